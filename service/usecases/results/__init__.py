"""Kept results: keep, find, list, delete, share, and sign their records."""
