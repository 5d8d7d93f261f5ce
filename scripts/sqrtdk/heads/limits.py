"""Numbers beyond which something is no activation, no score, or no entry of a mask but a truth value."""

HALF_MAXIMUM = 65504.0
"""Largest number of float16."""
ABSURD = 1e30
"""Larger numbers are no activations, and their powers would overflow."""
ADDITIVE = -9000.0
"""An additive mask at or below this forbids: −10⁴ is the mildest in use, and bfloat16 rounds it to −9984."""
IN_SCORES = -5000.0
"""The same for scores that were given with their mask added, where −10⁴ stands beside a score: if a gap is below."""
SINK_TIMES, SINK_SHARE = 10.0, 0.1
"""A key is a sink where it takes so many times the uniform share, and at least this part of all attention."""
