"""Endpoints of offers, accelerators, models and price sources."""
