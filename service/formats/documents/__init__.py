"""Documents that are exported: HTML, Markdown, XLSX, ICS, CSV, FOCUS, charts."""
