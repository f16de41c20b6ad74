"""What only a browser can tell of the report; `make check-report` runs it."""
