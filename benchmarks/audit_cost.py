"""What the audit and the monitor cost: the monitor against attention itself, the audit against reading the file.

    python benchmarks/audit_cost.py [--layers 32] [--heads 32] [--tokens 1024] [--d-k 128] [--folder DIR]

The second part writes a float16 dump of this size into a temporary folder, reads it, audits it in a process of its own
and prints seconds and peak memory. Writes nothing else.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from bench_timing import Process, run_process

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import numpy as np  # noqa: E402 - after the environment and the path are set

from sqrtdk.heads.monitor import AttentionMonitor  # noqa: E402

READ = "import sys, numpy; [array.sum() for array in numpy.load(sys.argv[1]).values()]"


def attention(q, k, v):
    """Return logits and output of float32 softmax attention, as a framework on a CPU computes them."""
    logits = (q @ k.swapaxes(-1, -2)) * np.float32(q.shape[-1] ** -0.5)
    weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    return logits, weight @ v


def seconds(function, times: int = 5) -> float:
    """Return the least CPU time of a call."""
    found = []
    for _ in range(times):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def monitor_cost() -> None:
    print(f"{'batch × heads × tokens × d_k':30} {'attention':>10} {'monitor':>10} {'share':>7} {'every 10':>9}")
    for shape in ((8, 8, 128, 64), (4, 8, 512, 64), (2, 16, 1024, 64), (1, 8, 2048, 128)):
        rng = np.random.default_rng(1)
        q, k, v = (rng.normal(size=shape).astype(np.float32) for _ in range(3))
        logits, _ = attention(q, k, v)
        own = seconds(lambda q=q, k=k, v=v: attention(q, k, v))
        extra = seconds(lambda logits=logits: AttentionMonitor().observe("a", logits))
        name = " × ".join(map(str, shape))
        print(f"{name:30} {1e3 * own:7.1f} ms {1e3 * extra:7.1f} ms {extra / own:7.1%} {extra / own / 10:9.2%}")


def write_dump(path: Path, layers: int, heads: int, tokens: int, d_k: int) -> None:
    """Write a float16 dump of random queries and keys."""
    rng, shape = np.random.default_rng(1), (layers, heads, tokens, d_k)
    q, k = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(2))
    np.savez(path, q=q, k=k)


def audit(path: Path, mask: str) -> Process:
    """Audit a dump in a process of its own."""
    options = ["--scale", "1/sqrt(d_k)", "--layout", "LHSD", "--mask", mask]
    return run_process([sys.executable, "-m", "sqrtdk", "audit", str(path), *options], cwd=SCRIPTS)


def read(path: Path) -> Process:
    """Read the arrays of a dump in a process of its own, and nothing else."""
    return run_process([sys.executable, "-c", READ, str(path)])


def audit_cost(layers: int, heads: int, tokens: int, d_k: int, folder: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "dump.npz"
        write_dump(path, layers, heads, tokens, d_k)
        reading = read(path)
        size = path.stat().st_size / 1e6
        shape = " × ".join(map(str, (layers, heads, tokens, d_k)))
        print(f"\n{shape}, {size:.0f} MB; reading the arrays: {reading.wall:.2f} s, {reading.cpu:.2f} s of CPU time")
        for mask in ("auto", "causal"):
            done = audit(path, mask)
            print(f"mask {mask}: {done.wall:.0f} s, {done.cpu / reading.cpu:.0f} times the CPU time of reading")
            print(f"{done.output.splitlines()[-1]}\npeak MB: {done.peak:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 32), ("heads", 32), ("tokens", 1024), ("d-k", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--folder")
    monitor_cost()
    audit_cost(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
