"""Simulated runs, the accuracy of forecasts and drift tests on them, and calibrated thresholds."""
