"""A base request with fields changed: sweeps and sensitivities."""
