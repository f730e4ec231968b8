"""Schemas of buying or renting a fleet."""
