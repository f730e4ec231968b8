"""How near the throughput model comes to published measurements, and where its parameters come from."""
