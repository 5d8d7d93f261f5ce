"""Figures: frames to drawings and to the words beside them.

It knows the rooms up to `words`; matplotlib is loaded here alone.
"""
