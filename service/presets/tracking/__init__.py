"""Thresholds of tracking."""
