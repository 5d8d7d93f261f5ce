"""The report: answers, tables, article, page, LaTeX, citing.

It knows all rooms.
"""
