"""What only makers run."""
