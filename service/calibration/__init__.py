"""Where the throughput model's parameters come from: published measurements, carried with their sources, and the fit to them."""
