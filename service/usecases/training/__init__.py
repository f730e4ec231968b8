"""One training run: estimate, levers, repricing."""
