"""Small models on an exact backward pass: tasks, the effect of a scale rule inside a model, runs and what they show.

It knows the rooms up to `variants`.
"""
