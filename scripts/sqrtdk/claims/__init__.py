"""The claims of two widely read articles, each with the test that decides it.

It knows the rooms up to `words`, but no study.
"""
