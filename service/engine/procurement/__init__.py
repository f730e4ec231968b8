"""Buying and renting a fleet: cash flows, present values, mixes, trials."""
