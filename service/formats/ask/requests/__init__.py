"""From what a sentence says to the request of an endpoint, and back to words."""
