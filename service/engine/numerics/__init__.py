"""Numerical methods that know no subject: ranges, quantiles, robust least squares, money in cents."""
