"""From typed pieces to what a sentence says, and what it asks for."""
