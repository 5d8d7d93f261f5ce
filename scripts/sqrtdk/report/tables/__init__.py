"""The tables of the report: frames to headings, units and numbers with their errors."""
