"""One module a verb: the context first, then domain in, domain out."""
