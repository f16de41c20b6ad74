"""What each section of the page shows, as values; the templates say it in HTML."""
