"""Price sheets of vendors, CSV and XLSX with their own headers, read into proposed offers."""
