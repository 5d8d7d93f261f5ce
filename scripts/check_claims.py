"""Measure what claims say and no other stage measures."""

from collections.abc import Iterator
from pathlib import Path

from program import run
from sqrtdk.heads import enumeration
from sqrtdk.results.writing import write_table
from sqrtdk.studies import claim_checks
from sqrtdk.variants import notation


def check_claims(seed: int, scalings: list, files: list[Path], output: Path):
    """Write one row for each check; `scalings` are the scale rules of the models whose heads the files hold."""
    write_table(output, claim_checks.table(seed, trained(files, scalings)))


def trained(files: list[Path], scalings: list[str]) -> Iterator[tuple]:
    """Yield queries, keys and scale factor of each head; a rule without a constant factor has no logits to look at."""
    for file, scaling in zip(files, scalings, strict=True):
        dump = enumeration.read_dump(file)
        factor = notation.parse(scaling).factor(dump.q.shape[-1], dump.k.shape[-2])
        if factor is not None:
            for queries, keys in zip(dump.q, dump.k, strict=True):
                for q, k in zip(queries, keys, strict=True):
                    yield q, k, factor


if __name__ == "__main__":
    run(check_claims)
