"""Calibration of the throughput model to published measurements: `python -m tools.calibration`."""
