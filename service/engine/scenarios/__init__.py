"""Monte Carlo trials, sensitivity and optimisation."""
