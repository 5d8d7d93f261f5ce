"""Cells that are kept: continued they are those that were drawn at once, and runs of several seeds are put together."""

import json
import math
import runpy
import sys

import numpy as np
import pandas as pd
import pytest
from config_help import ROOT
from scipy import stats

from sqrtdk import __main__
from sqrtdk.sampling import blocks, cells, ensembles, merging, moments

SPECS = {
    "gaussian": {"family": "gaussian"},
    "no eighth moment": {"family": "student_t", "df": 6},
    "no fourth moment": {"family": "student_t", "df": 3},
    "matched": {"family": "aligned", "rho": 0.5},
    "one absolute value": {"family": "rademacher"},
    "common factor": {"family": "equicorrelated", "query_rho": 0.5, "key_rho": 0.5},
}
MADE_FROM = {"code": "abc", "numpy": "2"}


def draw(spec, d_k, precision, before=None, seed=3, max_scalars=2e6):
    return moments.draw_cell(ensembles.build(spec), d_k, "x", seed, precision, max_scalars, before)


def described(spec, d_k, drawn):
    return moments.describe_cell(ensembles.build(spec), d_k, "x", drawn)


class TestContinued:
    @pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
    @pytest.mark.parametrize("d_k", [1, 24])
    @pytest.mark.parametrize("stages", [(0.02, 0.01), (0.004, 0.002, 0.001)], ids=str)
    def test_a_cell_in_stages_is_the_cell_drawn_at_once(self, spec, d_k, stages):
        drawn, sizes = None, []
        for precision in stages:
            drawn = draw(spec, d_k, precision, drawn)
            sizes.append(drawn.n_products)
        whole = draw(spec, d_k, stages[-1])
        assert described(spec, d_k, drawn) == described(spec, d_k, whole)
        for name in cells.BLOCKS:
            np.testing.assert_array_equal(getattr(drawn.sums, name), getattr(whole.sums, name))
        assert sizes == sorted(sizes)

    def test_only_what_is_lacking_is_drawn(self, monkeypatch):
        drawn = []
        original = moments.sum_blocks

        def counting(ensemble, d_k, plan, *rest):
            drawn.append(plan.n_products)
            return original(ensemble, d_k, plan, *rest)

        monkeypatch.setattr(moments, "sum_blocks", counting)
        first = draw(SPECS["gaussian"], 8, 0.004)
        drawn.clear()
        second = draw(SPECS["gaussian"], 8, 0.002, first)
        assert sum(drawn) == second.n_products - first.n_products > 0
        drawn.clear()
        draw(SPECS["gaussian"], 8, 0.002, second)
        assert drawn == []

    def test_less_precision_is_drawn_anew_and_other_blocks_are_not_continued(self):
        precise = draw(SPECS["gaussian"], 8, 0.002)
        assert draw(SPECS["gaussian"], 8, 0.01, precise).n_products == draw(SPECS["gaussian"], 8, 0.01).n_products
        narrow = draw(SPECS["gaussian"], 512, 0.01, max_scalars=1e5)
        assert narrow.n_queries != draw(SPECS["gaussian"], 512, 0.01).n_queries
        wide = draw(SPECS["gaussian"], 512, 0.01, narrow)
        assert described(SPECS["gaussian"], 512, wide) == described(
            SPECS["gaussian"], 512, draw(SPECS["gaussian"], 512, 0.01)
        )

    def test_scores_for_quartiles_are_kept_no_longer_than_needed(self):
        assert draw(SPECS["gaussian"], 8, 0.01).sums.kept.size > 0
        assert draw(SPECS["gaussian"], 8, 0.001).sums.kept.size == 0


class TestFile:
    def cell(self, precision=0.02):
        drawn = draw(SPECS["gaussian"], 8, precision)
        return cells.StoredCell({"spec": SPECS["gaussian"], "seed": 3}, drawn, described(SPECS["gaussian"], 8, drawn))

    def test_what_is_read_is_what_was_written(self, tmp_path):
        whole = {8: self.cell(), 16: self.cell(0.001)}
        cells.write(tmp_path / "a.npz", whole)
        again = cells.read(tmp_path / "a.npz")
        assert cells.found(tmp_path / "a.npz") == {d_k: cell.found for d_k, cell in whole.items()}
        for d_k, cell in whole.items():
            assert again[d_k].identity == cell.identity
            for name in cells.BLOCKS:
                np.testing.assert_array_equal(getattr(again[d_k].drawn.sums, name), getattr(cell.drawn.sums, name))
            assert described(SPECS["gaussian"], 8, again[d_k].drawn) == cell.found

    def test_what_is_no_such_file_has_no_cells(self, tmp_path):
        assert cells.read(tmp_path / "missing.npz") == {}
        (tmp_path / "half.npz").write_bytes(b"PK\x03\x04half")
        assert cells.read(tmp_path / "half.npz") == {}
        np.savez(tmp_path / "other.npz", other=np.arange(3))
        assert cells.read(tmp_path / "other.npz") == {}


def simulate(folder, seed=1, widths=(4, 8), precision=0.02, spec=SPECS["gaussian"], made_from=MADE_FROM, name="g"):
    """Run the program as a job of a run with results in a folder."""
    program = sys.modules.get("simulate_moments") or runpy.run_path(str(ROOT / "scripts/simulate_moments.py"))
    program["simulate_moments"](
        name, spec, list(widths), seed, precision, 2e6, made_from, folder / merging.FOLDER / name / "all.npz"
    )
    return cells.read(folder / merging.FOLDER / name / "all.npz")


class TestProgram:
    def test_a_new_width_leaves_the_others_as_they_are(self, tmp_path, monkeypatch):
        first = simulate(tmp_path, widths=[4, 8])
        asked = []
        original = moments.sum_blocks
        monkeypatch.setattr(moments, "sum_blocks", lambda e, d_k, *rest: asked.append(d_k) or original(e, d_k, *rest))
        second = simulate(tmp_path, widths=[4, 6, 8])
        assert list(second) == [4, 6, 8]
        assert set(asked) == {6}
        assert {d_k: second[d_k].found for d_k in first} == {d_k: cell.found for d_k, cell in first.items()}

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": 2},
            {"spec": {"family": "gaussian", "query_mean": 1.0}},
            {"made_from": {"code": "abd", "numpy": "2"}},
        ],
        ids=str,
    )
    def test_what_is_of_another_origin_is_drawn_anew(self, tmp_path, change):
        simulate(tmp_path / "one", precision=0.005)
        changed = simulate(tmp_path / "one", **change)
        assert {d_k: cell.found for d_k, cell in changed.items()} == {
            d_k: cell.found for d_k, cell in simulate(tmp_path / "two", **change).items()
        }

    def test_a_failing_cell_is_named_and_those_before_it_stay(self, tmp_path, monkeypatch):
        original = moments.draw_cell

        def failing(ensemble, d_k, *rest):
            if d_k == 8:
                raise MemoryError("no room")
            return original(ensemble, d_k, *rest)

        monkeypatch.setattr(moments, "draw_cell", failing)
        with pytest.raises(MemoryError) as caught:
            simulate(tmp_path)
        assert caught.value.__notes__ == ["in the cell of g at d_k = 8"]
        assert list(cells.read(tmp_path / merging.FOLDER / "g/all.npz")) == [4]


class TestMerge:
    def test_blocks_of_two_seeds_are_as_good_as_so_many_of_one(self, tmp_path):
        for seed in (1, 2):
            simulate(tmp_path / str(seed), seed=seed, precision=0.004)
        assert __main__.main(["merge", *(str(tmp_path / seed) for seed in "12"), "--output", str(tmp_path / "m")]) == 0
        rows = pd.read_csv(tmp_path / "m/moments.csv")
        parts = [simulate(tmp_path / str(seed), seed=seed, precision=0.004) for seed in (1, 2)]
        assert list(rows["d_k"]) == [4, 8]
        for row in rows.to_dict("records"):
            alone = [part[row["d_k"]].found["row"] for part in parts]
            assert row["n_scores"] == sum(one["n_scores"] for one in alone)
            assert row["variance"] == pytest.approx(np.mean([one["variance"] for one in alone]), rel=1e-4)
            for name in ("variance_se", "mean_se", "quartile_3_se"):
                assert row[name] == pytest.approx(math.hypot(*(one[name] for one in alone)) / 2, rel=0.05)
        counts = pd.read_csv(tmp_path / "m/score_histograms.csv").groupby("d_k")["count"].sum()
        assert list(counts) == list(rows["n_scores"])
        assert json.loads((tmp_path / "m/merged.json").read_text(encoding="utf-8")) == {"seeds": [1, 2], **MADE_FROM}

    @pytest.mark.slow
    def test_intervals_of_merged_runs_cover(self):
        spec, covered, unequal, studies = SPECS["common factor"], 0, 0, 200
        ensemble = ensembles.build(spec)
        for study in range(studies):
            # The second run is longer, and has larger blocks.
            runs = [draw(spec, 2, precision, None, 2 * study + i, 3e5) for i, precision in enumerate((0.03, 0.01))]
            sums = moments.put_together(runs)
            drawn = moments.Draws(0, 0, "precision", sums, moments.mean_quartiles([described(spec, 2, runs[0])["row"]]))
            row = moments.describe_cell(ensemble, 2, "x", drawn)["row"]
            t = stats.t(row["n_blocks"] - 1).isf(0.025)
            covered += abs(row["variance"] - row["exact_variance"]) < t * row["variance_se"]
            unequal += blocks.stack(runs[0].n_products) != blocks.stack(runs[1].n_products)
        assert unequal == studies
        assert abs(covered - 0.95 * studies) < 3 * math.sqrt(0.95 * 0.05 * studies)

    def test_everything_that_stands_in_the_way_is_said_at_once(self, tmp_path, capsys):
        simulate(tmp_path / "a", seed=1)
        simulate(tmp_path / "b", seed=1)
        simulate(tmp_path / "c", seed=2, widths=[4], made_from={"code": "abd", "numpy": "2"})
        runs = [str(tmp_path / name) for name in ("a", "b", "c", "none")]
        assert __main__.main(["merge", *runs, "--output", str(tmp_path / "m")]) == 2
        said = capsys.readouterr().err
        for words in (
            f"{tmp_path / 'b'}: has the seed of {tmp_path / 'a'} (1)",
            f"{tmp_path / 'c'}: another code than {tmp_path / 'a'}",
            f"{tmp_path / 'c'}: lacks g at d_k = 8",
            f"{tmp_path / 'none'}: holds no cells",
        ):
            assert said.count(words) == 1, said
        assert not (tmp_path / "m").exists()
        assert __main__.main(["merge", str(tmp_path / "a")]) == 2
        assert "at least two" in capsys.readouterr().err
