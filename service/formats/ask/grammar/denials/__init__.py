"""What a sentence leaves out, takes back or leaves open, and what it prefers."""
