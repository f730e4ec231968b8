"""A training run as it is asked for and answered."""
