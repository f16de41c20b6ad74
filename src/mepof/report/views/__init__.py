"""The contents of each section of the page as values; the templates turn them into HTML."""
