"""From a sentence to typed pieces: numbers, dates, names and the words around them."""
