"""What every stage needs of statistics: estimates with errors, quantiles, shares.

It knows arrays and nothing else.
"""
