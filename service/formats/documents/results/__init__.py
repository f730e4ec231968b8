"""Documents of kept results: the same tables as HTML, Markdown and XLSX, and a chart of the ranges."""
