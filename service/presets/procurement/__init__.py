"""Data of procurement: published contract prices."""
