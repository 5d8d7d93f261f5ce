"""The figure of trained heads: what it shows of several models, of few heads, and of none."""

import numpy as np
import pandas as pd
import synthetic_results as synthetic
from figure_cases import describe

from sqrtdk.figures import panels
from sqrtdk.figures.catalogue import load
from sqrtdk.words import numbers


def test_no_heads_is_said_and_not_an_error():
    frames = {"real_heads": pd.DataFrame()}
    words = describe("real-heads", frames)
    assert "none is shown" in words.caption
    figure = load("real-heads").draw(frames)
    assert figure.get_axes()[0].texts[0].get_text() == words.caption


def test_two_networks_are_told_apart():
    frames = {"real_heads": synthetic.real_heads(layers=2, heads=3, dumps=("one", "two"))}
    figure = load("real-heads").draw(frames)
    markers = {line.get_marker() for line in figure.get_axes()[0].get_lines() if line.get_label() == panels.POINTS}
    assert len(markers) == 2
    assert "one (6 heads" in describe("real-heads", frames).caption
    text = describe("real-heads", frames).title
    assert text.startswith("In none of 2 trained models do most heads have logits of standard deviation 0.9 to 1.1")


def test_what_a_model_read_is_said_and_its_dumps_are_one_model():
    heads = synthetic.real_heads(layers=1, heads=3, dumps=("first", "second", "third"))
    model = heads["dump"].map({"first": "A", "second": "A", "third": "B"})
    frames = {
        "real_heads": heads.assign(
            model=model, input=heads["dump"].map({"first": "prose", "second": "speech"}).fillna("")
        )
    }
    words = describe("real-heads", frames)
    assert "A on prose (3 heads" in words.caption
    assert "B (3 heads" in words.caption
    assert "of 2 trained models" in words.title
    axes = load("real-heads").draw(frames).get_axes()[0]
    named = [text.get_text() for text in axes.texts if text.get_text()[:1] in ("A", "B")]
    assert named == ["A\n2 inputs", "B"]
    sinkless = heads.loc[heads["dump"] == "first", "sinkless_row_logit_std"].median()
    assert f"which 1 have, {numbers.significant(sinkless)}" in words.reading


def test_intervals_of_real_heads_count_the_runs_that_were_left_out():
    table = load("real-heads").data({"real_heads": synthetic.real_heads(layers=1, heads=2)})
    half = (table["independence_ratio_high"] - table["independence_ratio_low"]) / 2
    assert np.allclose(half / table["independence_ratio_se"], 2.0859634, rtol=1e-6)  # Student's t, 20 degrees


def test_heads_whose_scores_do_not_vary_are_left_out():
    heads = synthetic.real_heads()
    heads.loc[0, ["within_row_logit_std", "independence_ratio"]] = 0.0, float("nan")
    assert len(load("real-heads").data({"real_heads": heads})) == len(heads) - 1
    dead = {"real_heads": heads.iloc[:1]}
    assert "none is shown" in describe("real-heads", dead).caption
    assert "none is shown" in load("real-heads").draw(dead).get_axes()[0].texts[0].get_text()


def test_a_dump_without_an_input_is_called_by_its_model_alone():
    heads = synthetic.real_heads()
    words = describe("real-heads", {"real_heads": heads.assign(input=float("nan"))})
    assert "nan" not in words.caption
