"""The configuration: understood exactly or refused, and what a run of it will do and cost.

It knows all rooms but `report`.
"""
