"""The two figures of coloured cells: what is drawn is in the data, and the words turn with the numbers."""

import re

import numpy as np
import pytest
import synthetic_maps
import synthetic_results as synthetic
from figure_cases import data_of, describe, figure_of, svg
from matplotlib.colors import to_hex

from sqrtdk.figures import heat, panels
from sqrtdk.figures.catalogue import load
from sqrtdk.studies import attention_maps


def _describe(name: str, **changed):
    return describe(name, synthetic.frames() | changed)


class TestColours:
    def test_lightness_rises_in_even_steps(self):
        def lightness(colour):
            red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
            linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in (red, green, blue)]
            luminance = np.dot(linear, [0.2126, 0.7152, 0.0722])
            return 116 * luminance ** (1 / 3) - 16

        steps = np.diff([lightness(colour) for colour in heat.colours(10)])
        assert steps.min() > 0.7 * steps.max() > 3

    def test_ink_is_seen_on_its_colour(self):
        assert heat.ink(0.0) == heat.LIGHT
        assert heat.ink(1.0) == heat.DARK


class TestAttentionMaps:
    @pytest.mark.slow
    def test_every_cell_has_the_colour_of_its_weight(self):
        figure, table = figure_of("attention-maps"), data_of("attention-maps")
        edges = load("attention-maps")._EDGES
        shades = heat.colours(len(edges) - 1)
        axes = [axes for axes in figure.get_axes() if axes.get_ylim()[0] == attention_maps.N]
        places = [(rule, d_k) for rule in attention_maps.RULES for d_k in (4, 64, 1024)]
        assert len(axes) == len(places)
        for (rule, d_k), one in zip(places, axes, strict=True):
            shown = np.zeros((attention_maps.N, attention_maps.N), int)
            for patch in one.patches[1:]:
                for (x, start), (_, end) in patch.get_path().vertices.reshape(-1, 2, 2):
                    shown[int(start) : int(end), int(x)] += shades.index(to_hex(patch.get_edgecolor()))
            rows = table[(table["scaling"] == rule) & (table["d_k"] == d_k)].sort_values("query")
            weights = rows[list(attention_maps.WEIGHTS)].to_numpy()
            assert (np.array(edges)[shown] <= weights).all()
            assert (weights <= np.array(edges)[shown + 1]).all()
            (dots,) = one.get_lines()
            assert len(dots.get_xydata()) == (weights > 0.5).sum()

    def test_means_over_blocks_stand_beside_where_they_were_measured(self):
        saturation = synthetic.frames()["softmax_saturation"]
        cell = "ensemble == 'gaussian' and n_keys == 16 and d_k == 64 and scaling == 'none' and measure == "
        row = saturation.query(cell + "'effective_keys'").iloc[0]
        table = data_of("attention-maps")
        shown = table[(table["d_k"] == 64) & (table["scaling"] == "none")]["mean_effective_keys"].unique()
        assert shown == pytest.approx([row["estimate"]], rel=1e-5)
        assert "mean over many independent draws" in _describe("attention-maps").caption
        bare = _describe("attention-maps", softmax_saturation=saturation.query("n_keys != 16"))
        assert "independent blocks" not in bare.caption
        assert "seed 5" in bare.caption

    def test_words_follow_the_numbers(self):
        words = _describe("attention-maps")
        assert re.search(r"16 of 16 without a scale; 0 of 16 with 1/√d_k", words.reading)
        assert "prefers the same key in both rows" in words.reading
        table = synthetic.frames()["attention_maps"]
        table["scaling"] = table["scaling"].replace({"none": "1/sqrt(d_k)", "1/sqrt(d_k)": "none"})
        turned = _describe("attention-maps", attention_maps=table)
        assert "0 of 16 without a scale; 16 of 16 with 1/√d_k" in turned.reading
        shuffled = table.copy()
        first = shuffled["scaling"] == "none"
        shuffled.loc[first, ["weight_1", "weight_2"]] = shuffled.loc[first, ["weight_2", "weight_1"]].to_numpy()
        assert "prefers the same key" not in _describe("attention-maps", attention_maps=shuffled).reading


class TestPhaseMap:
    def test_lines_lie_where_the_tables_say(self):
        figure = figure_of("phase-map")
        frames = synthetic.frames()
        frontier = frames["freezing_frontier"].dropna()
        axes = figure.get_axes()[0]
        lines = [one for one in axes.collections if len(one.get_linewidth()) and one.get_linewidth()[0] > 1]
        # Critical line and half-frozen line, each with its casing.
        assert len(lines) == 4
        half = lines[2].get_paths()[0].vertices
        half = half[np.argsort(half[:, 1])]
        law = np.interp(np.log(frontier["n_keys"]), np.log(half[:, 1]), half[:, 0])
        assert law == pytest.approx(frontier["half_d_k_fixed_norm"], rel=0.03)
        critical = lines[0].get_paths()[0].vertices
        critical = critical[critical[:, 1] >= 8]
        assert critical[:, 0] == pytest.approx(2 * np.log(critical[:, 1]), rel=0.03)

    def test_the_map_is_filled_by_share(self):
        axes = figure_of("phase-map").get_axes()[0]
        assert axes.collections[0].get_array() is not None
        table = data_of("phase-map")
        exact = table[table["kind"] == "exact"]
        assert len(exact) == len(synthetic.frames()["phase_map"])
        assert exact["effective_share"].between(1e-6 * 0.9, 1).all()

    def test_the_worst_simulated_cell_is_said(self):
        saturation = synthetic.frames()["softmax_saturation"]
        assert "simulated cell" not in _describe("phase-map").caption  # no theory in these frames
        cells = (saturation["ensemble"] == "gaussian") & (saturation["measure"] == "participation_ratio")
        saturation.loc[cells, "theory"] = saturation["estimate"] - saturation["se"]
        row = saturation[cells].index[3]
        saturation.loc[row, "theory"] += 8 * saturation.loc[row, "se"]
        caption = _describe("phase-map", softmax_saturation=saturation).caption
        assert f"Over {cells.sum()} simulated cells inside the map the measured Σp² is at most 7 standard" in caption

    def test_words_follow_the_numbers(self):
        words = _describe("phase-map")
        assert "ViT-B/16, BERT, GPT-2, GPT-3, Llama 2 and Gemma lie on the frozen side" in words.reading
        near = synthetic.frames()["freezing_frontier"]
        near["half_d_k"] /= 10
        assert "All 7 marked shapes of models" in _describe("phase-map", freezing_frontier=near).reading
        assert "With 1/√d_k nothing of the map of more than two keys is frozen" in words.reading
        assert re.search(
            r"spread c√d_k would have to go from [\d.]+ at n = 2 to [\d.]+ at n = 1.048.576", words.reading
        )
        table = synthetic.frames()["phase_map"]
        table["scaling"] = table["scaling"].replace({"none": "1/sqrt(d_k)", "1/sqrt(d_k)": "none"})
        turned = _describe("phase-map", phase_map=table)
        assert re.search(r"With 1/√d_k \d+ % of the map of more than two keys is frozen", turned.reading)
        far = synthetic.frames()["freezing_frontier"]
        far["half_d_k"] *= 100
        assert "None of the 7 marked shapes" in _describe("phase-map", freezing_frontier=far).reading

    @pytest.mark.slow
    def test_a_part_of_the_tables_is_enough(self):
        frames = synthetic.frames()
        for name in ("freezing_frontier", "entropy_scale", "softmax_saturation"):
            part = frames | {name: frames[name].iloc[:0]}
            assert describe("phase-map", part).reading
            load("phase-map").draw(part)
        single = frames | {"phase_map": frames["phase_map"].query("n_keys == 64")}
        said = load("phase-map").draw(single).get_axes()[0].texts[0].get_text()
        assert said == "No exact averages over enough widths and numbers of keys."
        few = frames | {"phase_map": frames["phase_map"].query("n_keys in (64, 256) and d_k in (64, 128)")}
        assert load("phase-map").draw(few)

    @pytest.mark.slow
    def test_files_stay_small(self):
        for name in ("phase-map", "attention-maps"):
            assert len(svg(name).encode()) < 120_000
            assert len(data_of(name).to_csv(index=False)) < 60_000


def test_no_cell_is_drawn_as_a_point():
    for name in ("phase-map", "attention-maps"):
        lines = [line for axes in figure_of(name).get_axes() for line in axes.get_lines()]
        assert all(line.get_label() != panels.POINTS for line in lines)
    assert synthetic_maps.N_KEYS[-1] == 2**20
