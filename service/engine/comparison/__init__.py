"""Offers and owned hardware compared."""
