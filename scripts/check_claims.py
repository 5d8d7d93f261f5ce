"""Measure what claims say and no other stage measures."""

from collections.abc import Iterator
from pathlib import Path

from program import run
from sqrtdk.heads import enumeration
from sqrtdk.results.writing import write_table
from sqrtdk.studies import claim_checks
from sqrtdk.variants import notation


def check_claims(seed: int, dumps: dict, files: list[Path], output: Path):
    """Write one row for each check; `dumps` maps names to entries of the configuration, in the order of `files`."""
    write_table(output, claim_checks.table(seed, trained(dumps, files)))


def trained(dumps: dict, files: list[Path]) -> Iterator[claim_checks.TrainedHead]:
    """Yield the heads; a rule without a constant factor has no logits to look at."""
    for (name, entry), file in zip(dumps.items(), files, strict=True):
        dump = enumeration.read_dump(file)
        factor = notation.parse(entry["scaling"]).factor(dump.q.shape[-1], dump.k.shape[-2])
        if factor is not None:
            for _, _, q, k in dump.each():
                yield claim_checks.TrainedHead(entry.get("model", name), q, k, factor, dump.allowed)


if __name__ == "__main__":
    run(check_claims)
