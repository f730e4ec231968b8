"""Kept results and the links that open them."""
