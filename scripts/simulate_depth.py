"""Measure logits, entropy and tokens against depth in stacks of random attention layers."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import depth


def simulate_depth(n_stacks: int, seed: int, output: Path):
    """Write one row for each kind of stack, layer and measure."""
    write_table(output, depth.simulate(n_stacks, seed))


if __name__ == "__main__":
    run(simulate_depth)
