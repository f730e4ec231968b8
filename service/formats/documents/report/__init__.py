"""Documents of a tracked program's report."""
