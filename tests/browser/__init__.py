"""Checks of the report that need a browser; `make check-report` runs them."""
