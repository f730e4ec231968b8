"""Costs of offers and owned hardware, break-even and Pareto front."""
