"""Views of the pages, by subject."""
