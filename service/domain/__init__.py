"""What is asked and what is answered: frozen dataclasses, counts, ranges and errors. No I/O."""
