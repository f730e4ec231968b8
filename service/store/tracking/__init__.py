"""Tracked programs, their events and alerts."""
