"""Numerical tools that know nothing of training: ranges, quantiles, least squares, money in cents."""
