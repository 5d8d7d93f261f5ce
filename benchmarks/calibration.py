"""How often the report judges its own errors rightly: runs of many seeds, sound and with errors made too small.

    python benchmarks/calibration.py [--seeds 20] [--small 0.8] [--max-scalars 1e5] [--logits 4e4]

A run is every ensemble of the configuration at the widths WIDTHS, of at most so many random numbers for each cell, and
the attention rows of ROWS at the numbers of keys N_KEYS, of at most so many logits. It is judged as the report does it,
then once more with every standard error multiplied by `small`. Prints each seed's verdicts and writes nothing. That
the errors of kurtoses are too small in runs of this size is no false alarm: rare large scores decide them.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded: other processes share the cores
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import pandas as pd  # noqa: E402 - after the environment and the path are set
import yaml  # noqa: E402

from sqrtdk.config.rules import specification  # noqa: E402
from sqrtdk.results import distances  # noqa: E402
from sqrtdk.sampling import ensembles, moments  # noqa: E402
from sqrtdk.statistics import calibration  # noqa: E402
from sqrtdk.studies import saturation  # noqa: E402
from sqrtdk.theory import gaussian_rows, random_energy  # noqa: E402
from sqrtdk.variants.notation import parse  # noqa: E402

WIDTHS = (2, 8, 32, 128, 512)
ROWS = ("gaussian", "unequal", "one_sided", "equicorrelated", "outliers_aligned", "shared_tokens")
ROW_WIDTHS, N_KEYS = (4, 16, 64, 256), (8, 16, 64)
RULES = ("none", "1/sqrt(d_k)", "1/d_k")
PRECISION = 1e-4
"""Never reached, so that the costs allowed set the size of every run."""


def configured() -> dict[str, ensembles.base.Ensemble]:
    """Return every ensemble of config/config.yaml."""
    settings = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    return {name: ensembles.build(specification(entry)) for name, entry in settings["ensembles"].items()}


def moments_of(built: dict, seed: int, max_scalars: float) -> pd.DataFrame:
    """Return the distances of the moments of a run from their exact values."""
    cells = ((name, ensemble, d_k) for name, ensemble in built.items() for d_k in WIDTHS)
    rows = [
        moments.simulate_cell(ensemble, d_k, name, seed, PRECISION, max_scalars)["row"]
        for name, ensemble, d_k in cells
        if not ensemble.undefined_at(d_k)
    ]
    return distances.moments(pd.DataFrame(rows))


def averages() -> dict[int, random_energy.Interpolated]:
    """Return the exact averages of rows for each of N_KEYS."""
    tables = {n: random_energy.tabulate(n) for n in N_KEYS}
    return {
        n: random_energy.Interpolated({name: [row[name] for row in rows] for name in random_energy.COLUMNS})
        for n, rows in tables.items()
    }


def rows_of(built: dict, seed: int, n_logits: float, averages_of: dict) -> pd.DataFrame:
    """Return the distances of softmax measures and gradients from exact theory."""
    kinds = {"saturation": [], "gradients": []}
    for name in ROWS:
        for d_k in ROW_WIDTHS:
            mixed = gaussian_rows.mixture(built[name].row_spectrum(d_k))
            found = saturation.simulate_cell(built[name], d_k, N_KEYS, RULES, seed, name, int(n_logits))
            for rows, cells in zip(kinds.values(), found, strict=False):
                for row in cells:
                    factor, n = parse(row["scaling"]).constant(d_k, row["n_keys"]), row["n_keys"]
                    theory = gaussian_rows.measures(mixed, n, factor, averages_of[n]).get(row["measure"])
                    rows.append(row | {"theory": theory})
    frames = [pd.DataFrame(rows).astype({"estimate": float, "se": float, "theory": float}) for rows in kinds.values()]
    return distances.rows(*frames)


def judged(table: pd.DataFrame, small: float = 1.0) -> calibration.Calibration:
    """Judge a run as the report does, with its standard errors multiplied by a factor."""
    z, n_blocks = (table[name].to_numpy(float) for name in ("z", "n_blocks"))
    return calibration.calibrate(calibration.normal_scores(z / small, n_blocks), table["unit"].to_numpy())


def main() -> None:
    """Judge the runs of every seed and count the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--small", type=float, default=0.8)
    parser.add_argument("--max-scalars", type=float, default=1e5)
    parser.add_argument("--logits", type=float, default=4e4)
    chosen = parser.parse_args()
    built, averages_of, started = configured(), averages(), time.process_time()
    counts = {(kind, small): 0 for kind in ("moments", "kurtoses", "rows") for small in (1.0, chosen.small)}
    print(f"{'seed':>4} {'of':8} {'values':>6}  covered  errors made / stated, 95 % interval      at {chosen.small:g}")
    for seed in range(1, chosen.seeds + 1):
        found = moments_of(built, seed, chosen.max_scalars)
        kurtosis = found["quantity"] == "excess_kurtosis"
        tables = {"moments": found[~kurtosis], "kurtoses": found[kurtosis]}
        tables["rows"] = rows_of(built, seed, chosen.logits, averages_of)
        for kind, table in tables.items():
            sound, proud = judged(table), judged(table, chosen.small)
            counts[kind, 1.0] += not sound.right
            counts[kind, chosen.small] += not proud.right
            print(
                f"{seed:4} {kind:8} {sound.n:6}  {sound.share:.3f}    {sound.ratio:.3f} [{sound.ratio_low:.3f}, "
                f"{sound.ratio_high:.3f}] {'' if sound.right else 'poor':5}        {proud.share:.3f} {proud.ratio:.3f} "
                f"{'' if proud.right else 'poor'}",
                flush=True,
            )
    for (kind, small), count in counts.items():
        print(f"{kind}, errors times {small:g}: {count} of {chosen.seeds} runs called poor")
    print(f"{time.process_time() - started:.0f} CPU seconds")


if __name__ == "__main__":
    main()
