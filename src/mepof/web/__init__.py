"""``mepof serve``: runs, reports and the store in a browser; it reads files and has no database."""
