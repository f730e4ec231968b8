"""Questions in words: a grammar that reads a sentence into the request of an endpoint, and accounts for every word of it."""
