"""What is left of runs and of a program: hours, cost, days."""
