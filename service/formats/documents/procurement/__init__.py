"""The evidence pack of buying or renting: a workbook with formulas, and two pages as PDF, HTML or Markdown."""
