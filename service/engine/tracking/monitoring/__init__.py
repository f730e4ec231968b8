"""Signals of runs that go wrong: drift of rates, losses, and quality by evaluations."""
