"""Published scaling laws, priors and defaults of fits."""
