"""Results as tables. A missing value is null in JSON, an empty cell in CSV and — in Markdown."""
