"""One module a verb: the desk first, then domain in, domain out."""
