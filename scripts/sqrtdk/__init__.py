"""Measured laws of the attention score q·k: ensembles, exact theory, saturation, gradients, figures."""

__version__ = "0.1.0"
