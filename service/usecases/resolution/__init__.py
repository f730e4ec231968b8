"""From a request to a resolved run: names, defaults, prices, measurements."""
