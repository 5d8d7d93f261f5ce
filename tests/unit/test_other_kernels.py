"""What holds between machines: the same numbers by other kernels of BLAS and NumPy, as docs/scaling.md says."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from sqrtdk.sampling import cells

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
KERNELS = {
    "own": {},
    "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "no vectors": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},
}
MEANS, ORDERS = 1e-5, 1e-3
"""Largest difference between machines of averages and of medians over rows, as a share of the value."""
SHARE_OF_ERROR = 0.01
"""And as a share of the standard error, which counts where a value is near zero or lies between two of a sample."""
PROGRAM = """
import json, runpy, sys
sys.path.insert(0, sys.argv[1])
for name, arguments in json.loads(sys.argv[2]):
    sys.argv = [name, *arguments]
    runpy.run_path(f"{sys.path[0]}/{name}.py", run_name="__main__")
"""
SPECS = {
    "gaussian": {"family": "gaussian"},
    "student_t": {"family": "student_t", "df": 6},
    "equicorrelated": {"family": "equicorrelated", "query_rho": 0.5, "key_rho": 0.5},
}
TRAINING = {"task": "recall", "optimiser": "adam", "rates": [0.01], "seeds": 2, "steps": 60, "batch": 4, "layers": 1}
TRAINING |= {"schedule": "constant", "mirrored": False, "layer_norm": False}


def jobs(folder: Path) -> list:
    """Return small jobs of each kind, as programs with their arguments."""

    def job(name: str, **given) -> tuple[str, list[str]]:
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
        return name, [word for key, text in texts.items() for word in (f"--{key.replace('_', '-')}", text)]

    found = []
    for name, spec in SPECS.items():
        effort = {"precision": 0.01, "max_scalars": 200_000, "made_from": {}, "output": str(folder / f"{name}.npz")}
        found.append(job("simulate_moments", ensemble=name, spec=spec, widths=[64], seed=1, **effort))
        files = {kind: str(folder / f"{name}.{kind}.csv") for kind in ("saturation", "gradients", "distribution")}
        rules = {"n_keys": [16, 64], "scalings": ["none", "1/sqrt(d_k)"], "n_logits": 20_000}
        found.append(job("simulate_softmax", ensemble=name, spec=spec, d_k=64, seed=1, **rules, **files))
    found.append(job("simulate_initialisation", n_draws=8, seed=1, output=str(folder / "initialisation.csv")))
    files = {"output": str(folder / "log.csv"), "start": str(folder / "start.csv")}
    found.append(job("train_models", scaling="1/sqrt(d_k)", d_k=8, settings=TRAINING, seed=1, **files))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, dict[str, pd.DataFrame]]:
    """The tables of the jobs by each of the kernels, NumPy warning of none that this machine lacks."""
    found = {}
    for kernel, environment in KERNELS.items():
        folder = tmp_path_factory.mktemp("kernel")
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(SCRIPTS), json.dumps(jobs(folder))]
        given = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | environment
        done = subprocess.run(command, capture_output=True, text=True, env=given)
        assert done.returncode == 0, done.stderr
        found[kernel] = {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}
        rows = [cells.found(folder / f"{name}.npz")[64]["row"] for name in SPECS]
        found[kernel]["moments"] = pd.DataFrame(rows)
    return found


OTHERS = [kernel for kernel in KERNELS if kernel != "own"]


def apart(ours: pd.DataFrame, theirs: pd.DataFrame, column: str, error: str) -> float:
    """Return the largest difference of a column, as a share of the value plus one of its error."""
    near = ours[column].abs() * MEANS + ours[error] * SHARE_OF_ERROR
    return float(((ours[column] - theirs[column]).abs() / near.where(near > 0, 1)).max())


@pytest.mark.parametrize("kernel", OTHERS)
def test_averages_are_the_same_numbers(made, kernel):
    ours, theirs = made["own"], made[kernel]
    for column in ("mean", "variance", "within_row_variance", "excess_kurtosis"):
        assert apart(ours["moments"], theirs["moments"], column, f"{column}_se") < 1, column
    for name in (*(f"{name}.saturation" for name in SPECS), "initialisation"):
        assert apart(ours[name], theirs[name], "estimate", "se") < 1, name


@pytest.mark.parametrize("kernel", OTHERS)
def test_quantiles_lie_between_the_same_values(made, kernel):
    ours, theirs = made["own"], made[kernel]
    for column in ("quartile_1", "median", "quartile_3"):
        assert apart(ours["moments"], theirs["moments"], column, f"{column}_se") < 1, column
    for name in (f"{name}.gradients" for name in SPECS):
        near = ours[name]["median"].abs() * ORDERS
        assert ((ours[name]["median"] - theirs[name]["median"]).abs() <= near).all(), name


@pytest.mark.parametrize("kernel", OTHERS)
def test_training_begins_alike(made, kernel):
    first, other = (made[one]["log"].query("step == step.min()") for one in ("own", kernel))
    assert len(first) == TRAINING["seeds"]
    assert (first["loss"] - other["loss"]).abs().max() < MEANS * first["loss"].max()
    pd.testing.assert_frame_equal(made["own"]["start"], made[kernel]["start"], rtol=MEANS)


def test_the_kernels_are_others_where_there_are_any(made):
    """Else all of this would compare a machine with itself."""
    same = [kernel for kernel in OTHERS if made[kernel]["moments"].equals(made["own"]["moments"])]
    assert len(same) < len(OTHERS) or platform.machine() != "x86_64"


@pytest.mark.parametrize("kernel", OTHERS)
def test_after_some_steps_of_training_the_losses_are_others(made, kernel):
    """What docs/scaling.md lists as different is different, or the list would be longer than need be."""
    last, other = (made[one]["log"].query("step == step.max()") for one in ("own", kernel))
    unlike = not last["loss"].reset_index(drop=True).equals(other["loss"].reset_index(drop=True))
    assert unlike or platform.machine() != "x86_64" or made[kernel]["moments"].equals(made["own"]["moments"])
