"""Web pages in the system's Chromium."""
