"""Timing of the accelerator of this machine."""
