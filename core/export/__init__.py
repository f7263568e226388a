"""Results as JSON, CSV and Markdown. A missing value is null in JSON, an empty cell in CSV and — in Markdown."""
