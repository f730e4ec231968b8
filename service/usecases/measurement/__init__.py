"""Timing the accelerator of this machine."""
