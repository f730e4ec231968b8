"""Fleets that are bought, reserved or rented."""
