"""The fit of the throughput model to published measurements."""
