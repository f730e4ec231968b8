"""Figures of a tracked program from its events: cost, earned value, forecast, drift, gate, alerts."""
