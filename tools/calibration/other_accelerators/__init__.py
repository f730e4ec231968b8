"""Accelerators that the large fit has few or no rows of, and the shares of the peak of their families."""
