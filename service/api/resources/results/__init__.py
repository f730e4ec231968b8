"""Endpoints of kept results, their links and pages."""
