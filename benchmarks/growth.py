"""How time and memory of the saturation stage grow with the number of keys and with the width of a head.

    python benchmarks/growth.py [--family gaussian] [--repeats 1] [--rows 32] [--limit 1000]

Each point is a run of scripts/simulate_softmax.py in a process of its own, with as many rows at every point. Prints the
processor time of the program, the peak of resident memory of the process, and the exponent with which time grows,
fitted where the fixed costs no longer matter. Fails if a point takes more memory than the limit, in MB of 10^6 bytes.
"""

import argparse
import json
import math
import re
import sys
import tempfile
from collections.abc import Iterator

from bench_timing import ROOT, run_process

SCRIPT = ROOT / "scripts" / "simulate_softmax.py"
SCALINGS = ("none", "1/sqrt(d_k)", "1/d_k")
KEYS = [(64, 2**power) for power in range(10, 21)]
WIDTHS = [(2**power, 1024) for power in range(6, 17)]
FEWER_KEYS = [(2**power, 256) for power in range(6, 17)]
"""(d_k, n_keys) of the three series."""
FIXED_COSTS = 8.0
"""Only points that take so many times as long as the first enter the fit."""
SERIES = {"number of keys, d_k = 64": KEYS, "width, 1024 keys": WIDTHS, "width, 256 keys": FEWER_KEYS}


def measure(spec: dict, d_k: int, n_keys: int, n_logits: int) -> tuple[float, float]:
    """Run one cell in a process of its own; return its processor time in s and its peak of resident memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = {
            "ensemble": "growth",
            "spec": json.dumps(spec),
            "d-k": str(d_k),
            "n-keys": f"[{n_keys}]",
            "scalings": json.dumps(SCALINGS),
            "seed": "1",
            "n-logits": str(n_logits),
            **{table: f"{folder}/{table}.csv" for table in ("saturation", "gradients", "distribution")},
        }
        command = [
            sys.executable,
            str(SCRIPT),
            *(text for name, value in arguments.items() for text in (f"--{name}", value)),
        ]
        done = run_process(command)
    seconds = float(re.search(r"CPU seconds: (\S+) in the program", done.output)[1])
    return seconds, done.peak


def exponent(sizes: list[int], seconds: list[float]) -> tuple[float, float, int]:
    """Return the slope of ln(seconds) against ln(size), its standard error, and the number of points behind it."""
    points = [(math.log(n), math.log(t)) for n, t in zip(sizes, seconds, strict=True) if t > FIXED_COSTS * seconds[0]]
    if len(points) < 3:
        raise ValueError("fewer than three points take much longer than the first")
    n = len(points)
    x, y = ([point[axis] - sum(p[axis] for p in points) / n for point in points] for axis in (0, 1))
    square = sum(a * a for a in x)
    slope = sum(a * b for a, b in zip(x, y, strict=True)) / square
    rest = sum((b - slope * a) ** 2 for a, b in zip(x, y, strict=True))
    return slope, math.sqrt(rest / (n - 2) / square), n


def series(
    points: list[tuple[int, int]], spec: dict, rows: int, repeats: int
) -> Iterator[tuple[int, int, float, float]]:
    """Yield d_k, n_keys, the least processor time in s and the largest peak of memory in MB of each point."""
    for d_k, n_keys in points:
        runs = [measure(spec, d_k, n_keys, max(1000, rows * n_keys)) for _ in range(repeats)]
        yield d_k, n_keys, min(seconds for seconds, _ in runs), max(peak for _, peak in runs)


def fitted(found: list[tuple[int, int, float, float]]) -> tuple[float, float, int]:
    """Return what `exponent` does of a series, against the number of numbers that make up the keys."""
    return exponent([d_k * n_keys for d_k, n_keys, *_ in found], [seconds for *_, seconds, _ in found])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="gaussian", help="family of the ensemble (default gaussian)")
    parser.add_argument("--rows", type=int, default=32, help="rows at every point, at least 32 (default 32)")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each point, the fastest counts (default 1)")
    parser.add_argument("--limit", type=float, default=1000.0, help="peak memory allowed, MB (default 1000)")
    chosen = parser.parse_args()
    peak = 0.0
    for name, points in SERIES.items():
        print(f"\n{name}\n{'d_k':>8}{'n_keys':>10}{'CPU s':>10}{'peak MB':>10}")
        found = []
        for point in series(points, {"family": chosen.family}, chosen.rows, chosen.repeats):
            print("{:8d}{:10d}{:10.3f}{:10.0f}".format(*point), flush=True)
            found.append(point)
        slope, error, n = fitted(found)
        print(f"time grows with the exponent {slope:.3f} ± {error:.3f} (standard error, largest {n} points)")
        peak = max(peak, *(memory for *_, memory in found))
    good = peak <= chosen.limit
    print(f"\nlargest peak of resident memory: {peak:.0f} MB, {'within' if good else 'BEYOND'} {chosen.limit:.0f} MB")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
