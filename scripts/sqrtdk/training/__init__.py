"""Small models on an exact backward pass: tasks, scale rules inside a model, runs and what they show.

It knows the rooms up to `variants`.
"""
