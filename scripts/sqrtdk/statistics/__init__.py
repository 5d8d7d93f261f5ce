"""What every stage needs of statistics: estimates with errors, intervals, quantiles, shares; each once.

It knows arrays and nothing else.
"""
