"""The benchmark measures what it says: precision for the time, floors of the same work, parts that make a whole.

No test depends on how fast anything runs.
"""

import itertools
import json

import bench
import bench_kernels
import bench_page
import bench_run
import bench_timing
import numpy as np
import pytest
from bench_timing import Goal, Line, Spread

from sqrtdk.sampling import blocks, ensembles, moments, streams
from sqrtdk.statistics import estimates

# ---- precision for the time ------------------------------------------------------------------------------------------


def test_precision_for_the_time_of_a_toy():
    """A mean of n numbers that takes n seconds has one precision for the time, in half the time twice as much."""
    for n in (10, 1000):
        assert bench_kernels.precision(relative_variance=4 / n, seconds=n) == pytest.approx(0.25)
    assert bench_kernels.precision(0.4, 5) == 2 * bench_kernels.precision(0.4, 10)


@pytest.mark.parametrize("name", bench_kernels.ENSEMBLES)
def test_plain_numpy_draws_the_ensemble(name):
    """Its scores have the exact variance, and their variance the relative variance that is put in its place."""
    one, d_k, n, repeats = bench_kernels.ENSEMBLES[name], 6, 2000, 400
    exact = ensembles.build(one.spec).exact(d_k)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(repeats):
        q, k = one.plain(rng, n, d_k)
        found.append((q * k).sum(1).var(ddof=1))
    relative = np.array(found) / exact.variance
    assert abs(relative.mean() - 1) < 4.5 * relative.std() / np.sqrt(repeats)
    # A variance of nearly normal estimates scatters by √(2/repeats).
    expected = bench_kernels.plain_relative_variance(exact.excess_kurtosis, n)
    assert relative.var(ddof=1) == pytest.approx(expected, rel=4.5 * np.sqrt(2 / repeats))


@pytest.mark.parametrize("name", bench_kernels.ENSEMBLES)
def test_the_error_of_the_kernel_is_the_scatter_of_repeated_estimates(name):
    ensemble, repeats = ensembles.build(bench_kernels.ENSEMBLES[name].spec), 300
    plan = blocks.Plan(6, 6, 1, 200, "precision")
    values, errors = [], []
    for i in range(repeats):
        sums = moments.sum_blocks(ensemble, 8, plan, streams.generator(i, "bench test", name), 0.0, None)
        errors.append(bench_kernels.relative_variance(sums))
        values.append(estimates.bias_corrected(moments.central_variance, sums.powers).value)
    relative = np.array(values) / ensemble.exact(8).variance
    assert relative.var(ddof=1) == pytest.approx(np.mean(errors), rel=4.5 * np.sqrt(2 / repeats))


def test_the_gain_is_the_ratio_of_both_precisions():
    theirs, ours = [4.0, 8.0, 6.0], [2.0, 2.0, 2.0]
    gain = bench_timing.ratios(theirs, ours, 0.1 / 0.01)
    expected = [
        bench_kernels.precision(0.01, b) / bench_kernels.precision(0.1, a) for a, b in zip(theirs, ours, strict=True)
    ]
    assert gain.median == pytest.approx(np.median(expected))
    assert (gain.low, gain.high) == pytest.approx((min(expected), max(expected)))


@pytest.mark.slow
def test_lines_of_one_width():
    lines = list(bench_kernels.moment_lines(2, widths=(64,), names=("gaussian", "ar1")))
    assert [line.part[0] for line in lines] == ["1", "2", "1"]
    assert [line.goal.bound for line in lines] == [30, 1.3, 1]
    assert all(line.value.low <= line.value.median <= line.value.high for line in lines)
    for line in lines:
        shares = [float(word.split()[-1].rstrip("%")) for word in line.profile.split(", ")]
        assert sum(shares) == pytest.approx(100, abs=2)


# ---- floors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", bench_kernels.ENSEMBLES)
def test_the_floor_draws_the_numbers_of_the_kernel_and_multiplies_them(name):
    ensemble, d_k = ensembles.build(bench_kernels.ENSEMBLES[name].spec), 4
    plan = bench_kernels.plan(ensemble, d_k, 1e6)
    assert plan.n_products > 2 * blocks.BATCH_SCORES // (plan.n_queries * plan.n_keys)
    batches = blocks.batches(ensemble, d_k, plan, streams.generator(1, "same"))
    kernel = [scores.reshape(-1, *scores.shape[2:]) for _, _, scores in batches]
    floor = [
        q @ k.transpose(0, 2, 1) for q, k in bench_kernels._draws(ensemble, d_k, plan, streams.generator(1, "same"))
    ]
    assert len(floor) > 1
    np.testing.assert_array_equal(np.concatenate(kernel), np.concatenate(floor))


def test_rows_are_those_of_the_saturation_stage():
    work = bench_kernels.RowWork.draw(ensembles.build({"family": "gaussian"}), 16, 64)
    assert work.n_logits == bench_kernels.ROW_LOGITS
    assert work.scores().shape == work.upstream[0].shape == work.upstream[1].shape
    assert work.heads.shape[-2] == 2 * work.q.shape[-2]
    for kernel in (work.saturation, work.saturation_floor, work.gradients, work.gradients_floor):
        kernel()


# ---- timing and its table --------------------------------------------------------------------------------------------


def test_calls_take_turns_and_the_first_round_is_thrown_away(monkeypatch):
    calls, clock = [], itertools.count()
    monkeypatch.setattr(bench_timing.time, "process_time", lambda: float(next(clock)))
    times = bench_timing.in_turn(3, lambda: calls.append("a"), lambda: calls.append("b"))
    assert "".join(calls) == "ab" * 4
    assert times == [[1.0] * 3, [1.0] * 3]


def test_a_goal_is_held_against_the_median():
    for value, reached in ((Spread(1.2, 1.0, 1.4), True), (Spread(1.31, 1.0, 1.4), False), (1.3, True)):
        assert Line("2 floor", "case", "", "", value, Goal(1.3, least=False)).reached is reached
    assert Line("1 gain", "case", "", "", Spread(29.0, 1.0, 99.0), Goal(30, least=True)).reached is False
    assert Line("3 none", "case", "", "", Spread(29.0, 1.0, 99.0)).reached is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.01234, "0.0123"), (1.5, "1.5"), (99.96, "100"), (123456, "123,000"), (2.5e7, "2.50e+07")],
)
def test_numbers_have_three_digits(value, text):
    assert bench_timing.number(value) == text


def test_a_process_that_fails_says_what_it_said():
    good = bench_timing.run_process([bench_timing.sys.executable, "-c", "print('words')"])
    assert good.output == "words\n"
    assert 0 < good.peak < 100
    with pytest.raises(RuntimeError, match="no luck"):
        bench_timing.run_process([bench_timing.sys.executable, "-c", "raise SystemExit('no luck')"])


RECORD = {
    "cores": 2,
    "wall_seconds": 200.0,
    "cpu_seconds": 400.0,
    "cpu_seconds_in": dict(kernels=220.0, drawing=40.0, other_programs=10.0, imports=80.0, snakemake=30.0, rest=20.0),
    "peak_memory_mb": 250.0,
}


def test_the_shares_of_a_run_are_of_one_whole():
    lines = list(bench_run.whole_run("default run", RECORD))
    shares = [line.value for line in lines if line.case.startswith("share of ")]
    assert sum(shares) == pytest.approx(1)
    assert len(shares) == len(RECORD["cpu_seconds_in"])
    kernels = next(line for line in lines if "numerical kernels" in line.case)
    assert kernels.value == pytest.approx(0.55)
    assert kernels.reached is False
    assert lines[-1].value == pytest.approx(262.144)
    assert next(line.value for line in lines if "outside of kernels" in line.case) == pytest.approx(180)


@pytest.mark.parametrize("quick", [True, False])
def test_every_edit_is_measured_after_its_run_and_held_against_its_goal(monkeypatch, quick):
    ran = []

    def snakemake(folder, *options):
        results = folder / "run/results"
        results.mkdir(parents=True, exist_ok=True)
        (results / "run.json").write_text(json.dumps(RECORD), encoding="utf-8")
        assert (folder / "source" / bench_run.WORDS).is_file()
        ran.append((options, (folder / "source" / bench_run.WORDS).read_text(encoding="utf-8")))
        return bench_timing.Process("", float(len(ran)), 1.0, 1.0)

    monkeypatch.setattr(bench_run, "_snakemake", snakemake)
    lines = {line.case: line for line in bench_run.run_lines(2, quick)}
    assert {case: lines[case].goal.bound for case in bench_run.EDITS} == bench_run.EDITS
    given = [" ".join(options) for options, _ in ran]
    for said in ("title=Title 1", "language=zh", "96", "student_t"):
        assert sum(said in options for options in given) == 1
    # What is edited stands where it stood before the next edit begins.
    assert len({words for _, words in ran}) == 3
    assert all(("quick.yaml" in options) == quick for options in given[1:])


def test_the_page_says_what_is_missed_and_why_and_nothing_of_the_host():
    table = [
        *bench_run.whole_run("default run", RECORD),
        Line(
            "2 kernel over its floor",
            "d_k = 1",
            "3 ms",
            "1 ms",
            Spread(3.0, 2.9, 3.1),
            Goal(1.3, least=False),
            "draws 30%",
        ),
        Line("2 kernel over its floor", "d_k = 512", "1.1 ms", "1 ms", Spread(1.1, 1.0, 1.2), Goal(1.3, least=False)),
    ]
    page = bench_page.page(table, 5, 600.0)
    assert "- d_k = 1: 3 (2.9 to 3.1), to be ≤ 1.3; draws 30%" in page
    assert "1 of 2 goals are met." in page
    assert bench_page.TRIED["2"] in page
    assert bench_page.TRIED["4"] in page
    assert bench_page.TRIED["1"] not in page
    assert all(line.count("|") == len(bench_timing.HEAD) + 1 for line in page.splitlines() if line.startswith("|"))
    host = bench_timing.platform.node()
    assert not host or host not in page
    assert str(bench_timing.ROOT) not in page
    assert {"cores", "processor", "BLAS", "numpy"} < set(bench_timing.machine())


@pytest.mark.parametrize("arguments", [["--pairs", "0"], ["--pairs", "-1"], ["--output", "/nowhere/page.md"]])
def test_bad_arguments_are_refused_before_a_quarter_of_an_hour_is_spent(arguments, capsys, monkeypatch):
    monkeypatch.setattr(bench, "lines", lambda *_: pytest.fail("the benchmark started"))
    with pytest.raises(SystemExit):
        bench.main(arguments)
    assert arguments[0] in capsys.readouterr().err
