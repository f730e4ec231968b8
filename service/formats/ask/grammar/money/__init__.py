"""Sums, prices and terms: what is paid, of what, and who states it."""
