"""Whether nominal 95 % intervals cover: many small studies of every ensemble of the configuration.

    python benchmarks/coverage.py [--studies 400] [--family NAME ...] [--max-scalars 5e5] [--seed 1]

A study simulates each width anew and fits it as a run does. An interval of a variance is held against the exact
variance, of an exponent against the same weighted fit to the exact variances, of a local exponent against
log2(V(2d)/V(d)). Only disjoint pairs of widths count, so that all intervals of one kind are independent. Prints a table
and writes nothing.
"""

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded: the processes share the cores
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import numpy as np  # noqa: E402 - after the environment and the path are set
import yaml  # noqa: E402
from scipy import special  # noqa: E402

from sqrtdk.config.rules import specification  # noqa: E402
from sqrtdk.sampling import ensembles, laws, local_laws, moments  # noqa: E402
from sqrtdk.statistics import intervals, shares  # noqa: E402

WIDTHS = (4, 8, 16, 32, 64, 128)
QUANTITIES = ("variance", "exponent", "local exponent")
PRECISION = 1e-4
"""Never reached, so that `max_scalars` sets the size of every study."""


def simulate(ensemble, name: str, seed: int, max_scalars: float, widths=WIDTHS) -> list[dict]:
    """Return the rows of moments.csv of one study: the ensemble at those of the widths at which it exists."""
    return [
        moments.simulate_cell(ensemble, d_k, name, seed, PRECISION, max_scalars)["row"]
        for d_k in widths
        if not ensemble.undefined_at(d_k)
    ]


def refusal(rows: list[dict]) -> str:
    """Say why a study has no interval to be held against anything; empty where it has."""
    for row in rows:
        if row["variance_se"] is None:
            return row["reason"]
        if row["exact_variance"] is None:
            return f"no exact variance: {row['reason']}"
    return "" if len(rows) > 2 else "too few widths"


def tally(rows: list[dict]) -> dict[str, tuple[int, int]]:
    """Return, for each quantity, how many intervals of a study hold the truth, and how many there are."""
    rows = [row for row in rows if row["stopped_by"] != "degenerate"]
    d_k, value, se, blocks, exact = (
        np.array([row[column] for row in rows], dtype=float)
        for column in ("d_k", "variance", "variance_se", "n_blocks", "exact_variance")
    )
    held = np.abs(value - exact) <= intervals.t_quantile(blocks - 1) * se
    power = laws.VARIANCE_LAWS["power"]
    fit = laws.fit_law(power, d_k, value, se, blocks, log=True)
    truth = laws.fit_law(power, d_k, exact, se / value * exact, log=True).estimates[1]
    pairs = [slice(i, i + 2) for i in range(0, len(rows) - 1, 2)]
    local = [_holds(d_k[pair], value[pair], se[pair], blocks[pair], exact[pair]) for pair in pairs]
    return {
        "variance": (int(held.sum()), held.size),
        "exponent": (int(fit.ci_low[1] <= truth <= fit.ci_high[1]), 1),
        "local exponent": (sum(local), len(local)),
    }


def _holds(d_k, value, se, blocks, exact) -> bool:
    estimate, error, dof = local_laws.local_exponent(d_k, value, se, blocks)
    truth = np.log(exact[1] / exact[0]) / np.log(d_k[1] / d_k[0])
    return bool(abs(estimate - truth) <= intervals.t_quantile(dof) * error)


def total(studies: list[dict]) -> dict[str, tuple[int, int]]:
    """Add the tallies of many studies."""
    return {name: tuple(sum(study[name][i] for study in studies) for i in (0, 1)) for name in QUANTITIES}


def allowed(n_families: int) -> float:
    """Return how many binomial standard errors a share may be off: 3 for one family, Šidák's more for many."""
    level = 1 - (1 - 2 * special.ndtr(-3.0)) ** (1 / n_families)
    return -float(special.ndtri(level / 2))


def off(inside: int, n: int) -> float:
    """Return the distance of a share from 95 % in binomial standard errors."""
    return (inside / n - intervals.LEVEL) / shares.binomial_error(intervals.LEVEL, n)


def calibrated(inside: int, n: int, n_families: int = 1) -> bool:
    """Say whether a share of covering intervals is 95 %, up to chance."""
    return abs(off(inside, n)) <= allowed(n_families)


def configured() -> dict[str, dict]:
    """Return the specification of every ensemble of config/config.yaml."""
    settings = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    return {name: specification(entry) for name, entry in settings["ensembles"].items()}


def _part(task: tuple) -> tuple[str, str, list[dict]]:
    """Do some studies of one ensemble, in a process of its own."""
    name, spec, seeds, max_scalars = task
    ensemble, tallies = ensembles.build(spec), []
    for seed in seeds:
        rows = simulate(ensemble, name, seed, max_scalars)
        if reason := refusal(rows):
            return name, reason, []
        tallies.append(tally(rows))
    return name, "", tallies


def coverage(specs: dict[str, dict], studies: int, max_scalars: float, seed: int) -> dict[str, tuple[str, dict]]:
    """Return, for each ensemble, why it has no interval, or how many of them hold the truth, of how many."""
    seeds = np.array_split(np.arange(seed, seed + studies), max(1, studies // 20))
    tasks = [(name, spec, part.tolist(), max_scalars) for name, spec in specs.items() for part in seeds]
    found = {name: ["", []] for name in specs}
    with multiprocessing.get_context("spawn").Pool() as pool:
        for name, reason, tallies in pool.imap_unordered(_part, tasks):
            found[name][0] = reason or found[name][0]
            found[name][1] += tallies
    return {name: (reason, total(tallies) if tallies else {}) for name, (reason, tallies) in found.items()}


def report(found: dict[str, tuple[str, dict]]) -> tuple[str, bool]:
    """Return the table as text, and whether every share is 95 %."""
    told = [name for name, (reason, _) in found.items() if not reason]
    width, good = max(map(len, found)), True
    lines = [f"{'ensemble':{width}}  " + "  ".join(f"{quantity:>24}" for quantity in QUANTITIES)]
    for name, (reason, tallies) in found.items():
        if reason:
            lines.append(f"{name:{width}}  no interval: {reason}")
            continue
        cells, verdict = [], ""
        for quantity in QUANTITIES:
            inside, n = tallies[quantity]
            cells.append(f"{inside:6d} of {n:<6d}{100 * inside / n:6.2f} %")
            if not calibrated(inside, n, len(told)):
                verdict, good = f"{verdict}  {quantity}: {off(inside, n):+.1f} standard errors", False
        lines.append(f"{name:{width}}  " + "  ".join(f"{cell:>24}" for cell in cells) + verdict)
    lines.append(
        f"\n{len(told)} ensembles; a share may be {allowed(max(len(told), 1)):.2f} binomial standard errors from 95 % "
        f"(3 for one ensemble, Šidák's for all). {'Every share is.' if good else 'NOT CALIBRATED, see above.'}"
    )
    return "\n".join(lines), good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=400, help="studies of each ensemble (default 400)")
    parser.add_argument("--family", nargs="+", metavar="NAME", help="names of ensembles of the configuration; all")
    parser.add_argument("--max-scalars", type=float, default=5e5, help="random numbers per cell (default 5e5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first study (default 1)")
    chosen = parser.parse_args()
    specs = configured()
    unknown = [name for name in chosen.family or [] if name not in specs]
    if unknown:
        parser.error(f"no ensemble {', '.join(unknown)} in the configuration; there are {', '.join(specs)}")
    specs = {name: spec for name, spec in specs.items() if not chosen.family or name in chosen.family}
    started = time.time()
    text, good = report(coverage(specs, chosen.studies, chosen.max_scalars, chosen.seed))
    print(f"{text}\n{chosen.studies} studies each, {time.time() - started:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
