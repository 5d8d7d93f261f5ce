"""One row of attention: softmax in exact forms, how saturated it is, its gradients, keys that arrive in pieces.

It knows `statistics` and `sampling`.
"""
