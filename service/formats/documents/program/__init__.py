"""Documents of a program's plan."""
