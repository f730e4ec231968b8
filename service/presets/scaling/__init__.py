"""Published scaling laws and defaults of fits."""
