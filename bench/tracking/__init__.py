"""Simulated runs, what forecasts and drift make of them, and the thresholds that follow."""
