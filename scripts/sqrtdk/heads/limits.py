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
WEIGHTS_SUM = 0.02
"""How far from 1 rows of weights may be: bfloat16 rounds each weight by up to 0.4 %."""
ROWS_OF_WEIGHTS = 0.9
"""Weights are recognised where so many of the rows sum to 1."""
