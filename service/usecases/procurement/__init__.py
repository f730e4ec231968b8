"""Buying or renting a fleet for years."""
