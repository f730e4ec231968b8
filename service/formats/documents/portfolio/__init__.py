"""Documents of a portfolio: several programs on shared accelerators."""
