"""One module per view: ``routes`` gives the addresses that it answers."""
