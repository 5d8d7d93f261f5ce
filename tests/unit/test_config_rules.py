"""Ensembles and dumps of the configuration: families, parameters, names, widths and files."""

import copy
import datetime
from pathlib import Path

import numpy as np
import pytest
from config_help import DEFAULTS, NAN, ROOT, SCHEMA, problems, understood

from sqrtdk.config.rules import BESIDE, labels, settings, training_problems
from sqrtdk.config.validation import ConfigError, find_file, specification
from sqrtdk.sampling import ensembles
from sqrtdk.sampling.ensembles import families


def test_specifications_get_exact_types_and_one_order():
    spec = understood({"ensembles": {"a": {"df": "6", "query_sd": "2e0", "family": "student_t", "key_mean": 1}}})
    assert list(spec["ensembles"]["a"].items()) == [("family", "student_t"), *sorted_fields("a", spec)]
    assert spec["ensembles"]["a"] == {"family": "student_t", "df": 6.0, "query_sd": 2.0, "key_mean": 1.0}
    assert {type(value) for key, value in spec["ensembles"]["a"].items() if key != "family"} == {float}
    again = understood({"ensembles": {"a": {"family": "student_t", "key_mean": 1.0, "query_sd": 2, "df": 6.0}}})
    assert str(again["ensembles"]) == str(spec["ensembles"])


def sorted_fields(name, config):
    spec = config["ensembles"][name]
    return [(key, spec[key]) for key in ensembles.build(spec).spec if key in spec and key != "family"]


def test_a_distribution_of_scipy():
    config = {"ensembles": {"a": {"family": "gamma", "a": "2"}}}
    assert understood(config)["ensembles"] == {"a": {"family": "gamma", "a": 2.0}}
    found = problems({"ensembles": {"a": {"family": "gamma", "b": 2}, "b": {"family": "gama"}}})
    assert found["ensembles.a.a"].startswith("required by gamma")
    assert "a parameter of gamma" in found["ensembles.a.b"]
    assert found["ensembles.b.family"].endswith("| gamma")
    assert "scipy.stats" in problems({"ensembles": {"a": {"family": "gamma", "a": -1}}})["ensembles.a"]


@pytest.mark.parametrize(
    ("spec", "key", "words"),
    [
        ({"family": "gausian"}, ".family", "a built-in family"),
        ({"family": "Gaussian"}, ".family", "| gaussian"),
        ({"family": 3}, ".family", "text"),
        ({"family": ""}, ".family", "required, such as family: student_t"),
        ({}, ".family", "required, such as family: student_t"),
        ({"family:gaussian": ""}, ".family", "'family:gaussian' needs a space after its colon"),
        ({"family": "gaussian", "key_sd:2": None}, ".'key_sd:2'", "'key_sd:2' needs a space after its colon"),
        ({"family": "student_t"}, ".df", "required by student_t"),
        ({"family": "student_t", "df": None}, ".df", "required by student_t"),
        ({"family": "student_t", "df": 0}, ".df", "a number above 0"),
        ({"family": "student_t", "df": NAN}, ".df", "a number above 0"),
        ({"family": "student_t", "df": "1_0"}, ".df", "a number above 0"),
        ({"family": "student_t", "df": " 6 "}, ".df", "a number above 0"),
        ({"family": "student_t", "df": True}, ".df", "a number above 0"),
        ({"family": "student_t", "df": [6]}, ".df", "a number above 0"),
        ({"family": "student_t", "df": 10**400}, ".df", "a number above 0"),
        ({"family": "student_t", "df": "six"}, ".df", "a number above 0"),
        ({"family": "aligned", "rho": 1.5}, ".rho", "a number in [-1, 1]"),
        ({"family": "ar1", "query_phi": 1, "key_phi": 0}, ".query_phi", "a number in (-1, 1)"),
        ({"family": "aligned", "rho": 0, "query_mean": 1}, ".query_mean", "null takes out what another file has"),
        ("gaussian", "", "a mapping such as {family: student_t, df: 6}"),
        (["gaussian"], "", "a mapping such as {family: student_t, df: 6}"),
        (5, "", "a mapping such as {family: student_t, df: 6}"),
    ],
)
def test_refuses_a_specification(spec, key, words):
    found = problems({"ensembles": {"mine": spec}})
    assert list(found) == [f"ensembles.mine{key}"]
    assert words in found[f"ensembles.mine{key}"]


def test_the_value_of_a_parameter_is_shown_as_given():
    with pytest.raises(ConfigError, match=r"ensembles\.mine\.df = '1_0'\n"):
        understood({"ensembles": {"mine": {"family": "student_t", "df": "1_0"}}})
    with pytest.raises(ConfigError, match=r"ensembles\.mine\.df not given\n"):
        understood({"ensembles": {"mine": {"family": "student_t"}}})


def test_a_correlation_that_some_widths_do_not_allow():
    spec = {"family": "equicorrelated", "query_rho": -0.1, "key_rho": "-0.2"}
    assert understood({"d_k": [1, 2, 4], "ensembles": {"a": spec}})["ensembles"]["a"]["key_rho"] == -0.2
    with pytest.raises(ConfigError) as caught:
        understood({"d_k": [4, 8, 16, 32], "ensembles": {"a": spec}})
    for problem in caught.value.problems:
        assert problem.key == "ensembles.a"
    text = str(caught.value)
    assert "not possible at d_k = 8, 16, 32; at 32: query_rho = -0.1 is outside" in text
    assert "at 32: key_rho = -0.2 is outside" in text
    # A width that is itself a mistake does not hide the others, nor does it reach the family.
    found = problems({"d_k": [0, "x", 8, 8], "ensembles": {"a": spec}})
    assert set(found) == {"d_k[0]", "d_k[1]", "d_k[3]", "ensembles.a"}


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("My-Heads", "my_heads"),
        ("Straße 1", "stra_e_1"),
        ("a/b", "a_b"),
        ("../x", "x"),
        ("a b", "a_b"),
        ("gaussian\n", "gaussian"),
        ("1st", None),
        ("_x", "x"),
        ("", None),
        ("x" * 41, "x" * 40),
        ("a.csv", "a_csv"),
    ],
)
def test_names_are_slugs(name, suggestion):
    found = problems({"ensembles": {name: {"family": "uniform"}}})
    assert len(found) == 1
    assert "at most 40 lower-case letters, digits and _, starting with a letter" in next(iter(found.values()))
    assert next(iter(found.values())).endswith(f" | {suggestion}") == (suggestion is not None)


@pytest.mark.parametrize("name", [3, 2.5, True, None, (1, 2), datetime.date(2024, 1, 2)])
def test_names_are_text(name):
    found = problems({"ensembles": {name: {"family": "uniform"}}})
    assert len(found) == 1
    assert "the name has to be" in next(iter(found.values()))
    assert ("yes, no, on and off" in next(iter(found.values()))) == (name is True)


def test_a_name_glued_to_its_value():
    found = problems({"ensembles": {"aligned:null": ""}})
    assert list(found) == ["ensembles.'aligned:null'"]


def test_names_that_differ_only_in_case():
    found = problems({"ensembles": {"mine": {"family": "uniform"}, "MINE": {"family": "laplace"}}})
    assert "there is an entry mine already" in found["ensembles.MINE"]


def test_a_name_that_the_tables_use_for_a_head():
    found = problems({"ensembles": {"minilm_l6_l0_h02": {"family": "uniform"}, "minilm_l6": {"family": "uniform"}}})
    assert list(found) == ["ensembles.minilm_l6_l0_h02"]
    assert "a head of the dump minilm_l6" in found["ensembles.minilm_l6_l0_h02"]


@pytest.mark.parametrize("nothing", [None, "null", "~", ""])
def test_null_takes_out_entries_and_parameters(nothing):
    config = copy.deepcopy(SCHEMA["properties"]["ensembles"]["default"])
    config["aligned"] = nothing
    config["shifted"]["query_mean"] = nothing
    result = understood({"ensembles": config})["ensembles"]
    assert "aligned" not in result
    kept = {key: value for key, value in DEFAULTS["ensembles"]["shifted"].items() if key != "query_mean"}
    assert result["shifted"] == kept


def test_an_ensemble_may_have_its_own_effort():
    effort = {"precision": "1e-2", "max_scalars": "1e6", "softmax": "false", "softmax_logits": "2e5"}
    entry = {"family": "laplace", **effort}
    result = understood({"ensembles": {"mine": entry, "other": {"family": "uniform"}}})["ensembles"]["mine"]
    exact = {"precision": 0.01, "max_scalars": 1_000_000, "softmax": False, "softmax_logits": 200_000}
    assert result == {"family": "laplace", **exact}
    assert specification(result) == {"family": "laplace"}


def test_a_label_is_words_and_no_part_of_what_numbers_are_made_from():
    entry = {"family": "laplace", "label": "Double exponential (1, 2)"}
    config = understood({"ensembles": {"mine": entry, "other": {"family": "uniform"}}})
    assert labels(config) == {"mine": "Double exponential (1, 2)"}
    assert specification(config["ensembles"]["mine"]) == {"family": "laplace"}
    made = settings(config)
    assert made["ensembles"] == {"mine": {"family": "laplace"}, "other": {"family": "uniform"}}
    assert config.keys() - made.keys() == {"title", "language"}
    assert list(made) == [key for key in config if key in made]
    assert "text of 1 to 40" in problems({"ensembles": {"mine": entry | {"label": "x" * 41}}})["ensembles.mine.label"]


def test_no_family_has_a_parameter_named_as_an_effort():
    names = {parameter.name for family in families().values() for parameter in family.parameters()}
    assert names.isdisjoint(BESIDE)


def test_a_mistyped_effort_gets_the_nearest_name():
    found = problems({"ensembles": {"mine": {"family": "laplace", "softmx": False}}})
    assert found["ensembles.mine.softmx"].endswith("| softmax")


def test_widths_at_which_an_ensemble_is_not_defined_are_no_mistake_unless_nothing_is_left():
    rope = {"rope": {"family": "rope"}}
    assert understood({"ensembles": rope, "d_k": [1, 2, 3]})["d_k"] == [1, 2, 3]
    assert "no ensemble is defined" in problems({"ensembles": rope, "d_k": [1, 3]})["d_k"]


def test_some_softmax_is_measured():
    entry = {"family": "gaussian", "softmax": False}
    assert "at least one" in problems({"ensembles": {"mine": entry}})["ensembles"]


def test_key_matrices_stay_within_memory():
    assert understood({"d_k": [1048576], "n_keys": [64]})["d_k"] == [1048576]
    wide, long = (problems(config)["n_keys"] for config in ({"d_k": [1048576]}, {"n_keys": [1048576], "d_k": [4]}))
    assert wide.startswith("aligned, shared_tokens: ")
    assert "1073741824 numbers; allowed: at most 67108864, of at most 65536 keys" in wide
    assert "with a width of 4 these are 4194304 numbers; allowed: at most" in long


def test_keys_that_are_drawn_in_pieces_have_no_limit_of_memory():
    config = {"ensembles": {"mine": {"family": "gaussian"}}, "d_k": [65536], "n_keys": [1048576]}
    assert understood(config)["n_keys"] == [1048576]
    tokens = {"family": "raw_tokens", "d_model": 16385}
    assert "width of 65540" in problems({"ensembles": {"mine": tokens}, "d_k": [4], "n_keys": [1024]})["n_keys"]
    left_out = {"mine": {**tokens, "softmax": False}, "other": {"family": "uniform"}}
    assert understood({"ensembles": left_out, "d_k": [4], "n_keys": [1048576]})


def test_conventions_of_dumps():
    file = "resources/minilm-l6-qk.npz"
    sound = {"dumps": {"d": {"file": file, "convention": "1/sqrt(224)", "stage": "init"}}}
    assert understood(sound)["dumps"]["d"]["convention"] == "1/sqrt(224)"
    found = problems({"dumps": {"d": {"file": file, "convention": "mine", "stage": "late"}}})
    assert "named conventions are pre-scaled" in found["dumps.d.convention"]
    assert "one of init, trained, unknown" in found["dumps.d.stage"]


def test_files_of_dumps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("good.npz", q=np.zeros((1, 1, 3, 2)), k=np.zeros((1, 1, 3, 2)))
    Path("text.npz").write_text("version https://git-lfs.github.com/spec/v1")
    Path("empty.npz").touch()
    Path("folder.npz").mkdir()
    names = ["good.npz", "text.npz", "empty.npz", "folder.npz", "absent.npz", "good.npz/x", "a" * 999, str(tmp_path)]
    config = {"dumps": {f"d{i}": {"file": name} for i, name in enumerate(names)}}
    found = problems(config, folders=[tmp_path, ROOT])
    assert [found.get(f"dumps.d{i}.file", "") for i in (0,)] == [""]
    assert "text.npz: not a readable .npz file" in found["dumps.d1.file"]
    assert "empty.npz: is empty" in found["dumps.d2.file"]
    assert "folder.npz is a folder" in found["dumps.d3.file"]
    assert found["dumps.d4.file"] == f"no such file in {tmp_path} or {ROOT}"
    assert "no such file" in found["dumps.d5.file"]
    assert "no such file" in found["dumps.d6.file"]
    assert "is a folder" in found["dumps.d7.file"]
    result = understood({"dumps": {"d": {"file": "good.npz"}}}, folders=[tmp_path, ROOT])["dumps"]
    assert result == {"d": {"file": "good.npz", "scaling": "1/sqrt(d_k)"}}
    assert understood({}, folders=[tmp_path, ROOT]) == DEFAULTS
    assert problems({"dumps": {"d": {"file": "no"}}}, folders=[".", tmp_path])["dumps.d.file"].endswith(
        f" in {tmp_path}"
    )
    assert find_file("good.npz", [ROOT, "."]) == Path("good.npz")


@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "'q' holds NaN"), (np.inf, "'q' holds infinite"), (1e31, "values beyond 1e+30")]
)
def test_numbers_of_dumps_are_read_before_anything_runs(tmp_path, value, words):
    np.savez_compressed(tmp_path / "mine.npz", q=np.full((1, 1, 3, 2), value), k=np.zeros((1, 1, 3, 2)))
    assert words in problems({"dumps": {"mine": {"file": "mine.npz"}}}, folders=[tmp_path])["dumps.mine.file"]


def test_a_dump_whose_bytes_were_changed_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    np.savez_compressed(tmp_path / "mine.npz", q=rng.normal(size=(1, 2, 64, 8)), k=np.zeros((1, 2, 64, 8)))
    content = bytearray((tmp_path / "mine.npz").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "mine.npz").write_bytes(content)
    found = problems({"dumps": {"mine": {"file": "mine.npz"}}}, folders=[tmp_path])
    assert "'q' is not readable" in found["dumps.mine.file"]


@pytest.mark.parametrize(
    "spec", ["{family: outliers_aligned, scale: 1e300}", "{family: sparse, p: 1e-300}", "{family: gamma, a: 1e-300}"]
)
def test_parameters_beyond_what_numbers_hold_are_refused(spec):
    found = problems({"ensembles": {"mine": spec}})
    assert "beyond what numbers hold" in found["ensembles.mine"]


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    np.savez(tmp_path / "locked.npz", q=np.zeros((1, 1, 3, 2)), k=np.zeros((1, 1, 3, 2)))

    opened = Path.open

    def refuse(self, *arguments, **named):
        if self.name == "locked.npz":
            raise PermissionError(13, "Permission denied")
        return opened(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", refuse)
    found = problems({"dumps": {"d": {"file": "locked.npz"}}}, folders=[tmp_path])
    assert found["dumps.d.file"] == f"{tmp_path / 'locked.npz'} cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("dump", "key", "words"),
    [
        ({}, ".file", "required, such as file: my-heads.npz"),
        ({"file": None}, ".file", "required, such as file: my-heads.npz"),
        ({"file": "resources/minilm-l6-qk.npz", "scaling:none": ""}, ".'scaling:none'", "no such key"),
        ({"file": 3}, ".file", "allowed: text"),
        ({"file": "a\x00b"}, ".file", "no control characters"),
        ("x.npz", "", "a mapping such as {file: my-heads.npz}"),
    ],
)
def test_refuses_a_dump(dump, key, words):
    found = problems({"dumps": {"mine": dump}})
    assert list(found) == [f"dumps.mine{key}"]
    assert words in found[f"dumps.mine{key}"]


@pytest.mark.parametrize("name", ["<heads>.npz", "{heads}.npz", "{ heads,.*}.npz"])
def test_path_of_a_dump_that_snakemake_would_change_is_refused(tmp_path, name):
    (tmp_path / name).symlink_to(ROOT / "resources/minilm-l6-qk.npz")
    assert "rename it" in problems({"dumps": {"d": {"file": name}}}, folders=[tmp_path])["dumps.d.file"]


@pytest.mark.parametrize("name", ["< heads >.npz", "{}{.npz", "$x %y 'z' \"#\".npz"])
def test_other_signs_in_the_path_of_a_dump_are_text(tmp_path, name):
    (tmp_path / name).symlink_to(ROOT / "resources/minilm-l6-qk.npz")
    assert understood({"dumps": {"d": {"file": name}}}, folders=[tmp_path])["dumps"]["d"]["file"] == name


def test_names_that_snakemake_takes_for_a_recursion_are_refused():
    task = {"task": "recall"}
    training = {"x" + "ab" * 19 + "a": task, "a" * 40: task}
    found = problems({"ensembles": {"a" * 20: {"family": "laplace"}}, "training": training})
    assert found.keys() == {f"ensembles.{'a' * 20}", f"training.{'a' * 40}"}
    assert "twenty times" in found[f"training.{'a' * 40}"]


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"laplace": {"family": "gaussian"}}, "ensembles.laplace.family"),
        ({"student_t_3": {"family": "student_t", "df": 5}}, "ensembles.student_t_3.df"),
        ({"one_sided": {"family": "equicorrelated", "query_rho": 0.5, "key_rho": 0.5}}, "ensembles.one_sided.key_rho"),
    ],
)
def test_a_name_of_the_catalogue_stays_what_figures_call_it(entry, key):
    found = problems({"ensembles": entry})
    assert found.keys() == {key}
    assert "another name" in found[key]
    renamed = {f"my_{name}": spec for name, spec in entry.items()}
    assert understood({"ensembles": renamed})["ensembles"].keys() == renamed.keys()
    assert understood({"ensembles": {"student_t": {"family": "student_t", "df": 6}}})


def test_known_rates_are_one_for_each_rule():
    entry = {"task": "recall", "scalings": ["none", "1/d_k"], "around": [0.01]}
    found = problems({"training": {"mine": entry}})
    assert found.keys() == {"training.mine.around"}
    assert "one for each of the 2 scale rules" in found["training.mine.around"]
    for sound in ({"around": [0.01, 0.02]}, {"rates": [0.1]}):
        assert training_problems({"mine": entry | sound}) == []
