"""One training run: arithmetic, memory, step time, failures, cost, energy."""
