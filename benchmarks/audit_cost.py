"""What the audit and the monitor cost: the monitor against attention itself, the audit against reading the file.

    python benchmarks/audit_cost.py [--layers 32] [--heads 32] [--tokens 1024] [--d-k 128] [--folder DIR]

The second part writes a float16 dump of this size into a temporary folder, reads it, audits it in a process of its own
and prints seconds and peak memory. Writes nothing else.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import numpy as np  # noqa: E402 - after the environment and the path are set

from sqrtdk.monitor import AttentionMonitor  # noqa: E402

PEAK = """
import sys
from sqrtdk.__main__ import main
code = main(["audit", sys.argv[1], "--scale", "1/sqrt(d_k)", "--mask", sys.argv[2]])
with open("/proc/self/status") as file:
    print("peak MB:", int(file.read().split("VmHWM:")[1].split()[0]) // 1024)
sys.exit(code)
"""


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


def audit_cost(layers: int, heads: int, tokens: int, d_k: int, folder: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "dump.npz"
        rng, shape = np.random.default_rng(1), (layers, heads, tokens, d_k)
        q, k = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(2))
        np.savez(path, q=q, k=k)
        del q, k
        start = time.perf_counter()
        with path.open("rb") as file:
            while file.read(2**24):
                pass
        reading = time.perf_counter() - start
        print(
            f"\n{' × '.join(map(str, shape))}, {path.stat().st_size / 1e6:.0f} MB; reading the bytes: {reading:.2f} s"
        )
        for mask in ("auto", "causal"):
            start = time.perf_counter()
            command = [sys.executable, "-c", PEAK, str(path), mask]
            done = subprocess.run(command, capture_output=True, text=True, cwd=SCRIPTS)
            took = time.perf_counter() - start
            print(f"mask {mask}: {took:.0f} s, {took / reading:.0f} times reading; exit code {done.returncode}")
            print("\n".join(done.stdout.splitlines()[-2:]) + done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("layers", 32), ("heads", 32), ("tokens", 1024), ("d-k", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--folder")
    monitor_cost()
    audit_cost(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
