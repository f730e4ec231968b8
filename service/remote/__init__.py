"""A running service as its clients reach it: which server, with which key, and one request to it."""
