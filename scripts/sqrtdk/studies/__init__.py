"""Experiments on random queries and keys, one module for each.

They know the rooms up to `variants`, and not each other.
"""
