"""Models, memory, reliability and utilisation."""
