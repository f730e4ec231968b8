"""Thresholds of tracking, with their sources."""
