"""Long evaluations on workers."""
