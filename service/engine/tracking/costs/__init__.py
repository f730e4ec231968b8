"""What a program has cost, of what parts, and why that is not what was planned."""
