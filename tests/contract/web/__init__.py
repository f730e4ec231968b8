"""Web pages without a browser."""
