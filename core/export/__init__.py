"""Results as JSON, CSV and Markdown. A value that does not exist is absent: null, an empty cell, —."""
