"""Numbers and tables of the report for LaTeX."""
