"""A training run: what is requested and what is answered."""
