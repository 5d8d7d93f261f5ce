"""Values of the configuration are understood exactly, or refused with every mistake, in words for people."""

import copy
import datetime

import numpy as np
import pytest
from config_help import DEFAULTS, INF, NAN, ROOT, SCHEMA, assert_readable, problems, understood

from sqrtdk.config.messages import show
from sqrtdk.config.validation import ConfigError, load_schema, validate
from sqrtdk.config.values import read_boolean, read_integer, read_number
from sqrtdk.sampling.parameters import nearest_name


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("seed", 8, 8),
        ("seed", 8.0, 8),
        ("seed", "8", 8),
        ("seed", "+8", 8),
        ("seed", 0, 0),
        ("seed", "1e5", 100000),
        ("seed", "1.5e2", 150),
        ("seed", "12.50e1", 125),
        ("seed", 2**63 - 1, 2**63 - 1),
        ("seed", str(2**63 - 1), 2**63 - 1),
        ("seed", 2.0**53 - 1, 2**53 - 1),
        ("precision", 0.01, 0.01),
        ("precision", "1e-2", 0.01),
        ("precision", ".01", 0.01),
        ("precision", "0.01", 0.01),
        ("max_scalars", "1.5e8", 150000000),
        ("max_scalars", 1.5e8, 150000000),
        ("d_k", 64, [64]),
        ("d_k", "64", [64]),
        ("d_k", 64.0, [64]),
        ("d_k", [4, "8", 16.0, "1e2"], [4, 8, 16, 100]),
        ("d_k", (4, 8), [4, 8]),
        ("d_k", ["4", "8"], [4, 8]),
        ("d_k", "[4, 8]", [4, 8]),
        ("d_k", [8, 4], [4, 8]),
        ("n_keys", [64, 16], [16, 64]),
        ("scalings", "none", ["none"]),
        ("scalings", ["1/d_k", "none"], ["1/d_k", "none"]),
        ("title", "</script><b>$x$ {y} \\ % ' \" | 🤷 √ שלום", "</script><b>$x$ {y} \\ % ' \" | 🤷 √ שלום"),
        ("title", "x" * 200, "x" * 200),
    ],
)
def test_understands(key, value, expected):
    result = understood({key: value})[key]
    assert result == expected
    assert type(result) is type(expected)
    if isinstance(expected, list):
        assert [type(item) for item in result] == [type(item) for item in expected]
    assert understood({key: value}) == {**DEFAULTS, key: expected}


WHOLE = "a whole number from 0 to 9223372036854775807"
WIDTH = "a whole number from 1 to 1048576"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value", "shown", "words"),
    [
        *(
            ("seed", value, shown, WHOLE)
            for value, shown in [
                (-1, "-1"),
                (8.5, "8.5"),
                ("8.5", "'8.5'"),
                (True, "true"),
                (None, "null"),
                (NAN, "nan"),
                (-INF, "-inf"),
                (2**63, "9223372036854775808"),
                (2.0**53, "9007199254740992.0"),
                (10**400, "about 401 digits"),
                ("1e400", "'1e400'"),
                ("1" * 5000, "1..."),
                ("0x10", "'0x10'"),
                ("010", "'010'"),
                ("1_0", "'1_0'"),
                (" 8 ", "' 8 '"),
                ("8\n", "'8\\n'"),
                ("٨", "'٨'"),
                ("", "''"),
                ("null", "'null'"),
                ("nan", "'nan'"),
                ("eight", "'eight'"),
                ([8], "[8]"),
                ({"a": 1}, "{a: 1}"),
                (datetime.date(2024, 1, 2), "the date 2024-01-02"),
                (b"8", "a value of type bytes"),
            ]
        ),
        ("seed", 1e22, "1e+22", f"{WHOLE}; a number this large has to be written in digits"),
        ("precision", 0, "0", "a number from 1e-6 to 0.5"),
        ("precision", "inf", "'inf'", "a number from 1e-6 to 0.5"),
        ("precision", INF, "inf", "a number from 1e-6 to 0.5"),
        ("precision", NAN, "nan", "a number from 1e-6 to 0.5"),
        ("precision", "1e-999", "'1e-999'", "a number from 1e-6 to 0.5"),
        ("precision", 0.6, "0.6", "a number from 1e-6 to 0.5"),
        ("precision", True, "true", "a number from 1e-6 to 0.5"),
        ("max_scalars", 999, "999", "from 1000 to 1000000000000"),
        ("d_k", [], "[]", "a list of 1 to 100 values"),
        ("d_k", "[]", "'[]'", "a list of 1 to 100 values"),
        ("d_k", None, "null", "a list of 1 to 100 values"),
        ("d_k", {"a": 1}, "{a: 1}", "a list of 1 to 100 values"),
        ("d_k", "4,8", "'4,8'", f"{WIDTH}; several as in [a, b]"),
        ("d_k", 8.5, "8.5", f"{WIDTH}; several as in [a, b]"),
        ("d_k", "[4, 8", "'[4, 8'", "a list of 1 to 100 values"),
        ("d_k", list(range(1, 102)), "... 93 more]", "a list of 1 to 100 values"),
        ("d_k", "[" * 3000 + "]" * 3000, "[[[", "a list of 1 to 100 values"),
        ("n_keys", 1, "1", "a whole number from 2 to 1048576"),
        ("title", "", "''", "text of 1 to 200 characters"),
        ("title", "   ", "'   '", "text of 1 to 200 characters"),
        ("title", "\u200b \ufeff", "\\u200b", "text of 1 to 200 characters"),
        ("title", "x" * 201, "xxx...'", "text of 1 to 200 characters"),
        ("title", 2024, "2024", "in quotes where YAML would read it as something else"),
        ("title", False, "false", "in quotes where YAML would read it as something else"),
        ("title", None, "null", "text of 1 to 200 characters"),
        *(("title", f"a{c}b", "", "no control characters") for c in "\x00\n\t\x1b\x85\u2028\ud800"),
        ("language", "de", "'de'", "one of en, zh"),
        ("ensembles", None, "null", "1 to 100 named entries, such as {mine: {family: student_t, df: 6}}"),
        ("ensembles", "gaussian", "'gaussian'", "1 to 100 named entries"),
        ("ensembles", ["gaussian"], "['gaussian']", "1 to 100 named entries"),
        ("ensembles", "{x: {family: gaussian}", "'{x: {family: gaussian}'", "1 to 100 named entries"),
        ("ensembles", {}, "{}", "1 to 100 named entries"),
        ("ensembles", {"gaussian": None}, "{gaussian: null}", "1 to 100 named entries"),
    ],
)
def test_refuses(key, value, shown, words):
    with pytest.raises(ConfigError) as caught:
        understood({key: value})
    assert_readable(str(caught.value))
    (problem,) = caught.value.problems
    assert problem.key == key
    assert words in problem.allowed
    assert show(problem.value) in str(caught.value)
    assert shown in str(caught.value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([8, 8], {"d_k[1]": "repeats d_k[0]; each value once"}),
        ([4, 8, "8"], {"d_k[2]": "repeats d_k[1]; each value once"}),
        ([8, 8.0, "8e0"], {f"d_k[{i}]": "repeats d_k[0]; each value once" for i in (1, 2)}),
        ([1, 0, 2], {"d_k[1]": f"allowed: {WIDTH}"}),
        ([1, -4, NAN, None, True, "x", 1048577], {f"d_k[{i}]": f"allowed: {WIDTH}" for i in range(1, 7)}),
        ([[4]], {"d_k[0]": f"allowed: {WIDTH}"}),
        ("[4, x]", {"d_k[1]": f"allowed: {WIDTH}"}),
    ],
)
def test_items_of_a_list_are_named_by_position(values, expected):
    assert problems({"d_k": values}) == expected


def test_a_boolean_is_read_only_where_one_is_expected():
    schema = copy.deepcopy(SCHEMA)
    schema["properties"]["flag"] = {"type": "boolean", "default": True}
    values = [(False, False), ("false", False), ("False", False), ("true", True), (True, True)]
    for value, expected in values:
        assert validate({"flag": value}, schema, folders=[ROOT])["flag"] is expected
    for value in ("no", "", "0", 0, 1, None, [False]):
        with pytest.raises(ConfigError, match="allowed: true or false"):
            validate({"flag": value}, schema, folders=[ROOT])
    assert read_boolean("falsE") is False


def test_readers_by_themselves():
    assert [read_integer(x) for x in (True, 1.5, NAN, INF, "1e40", "9" * 41)] == [None] * 6
    assert read_number("1e-999") is None
    assert read_integer("1e39") == 10**39
    assert [read_number(x) for x in (10**301, 10**400, "1e308", "1e309", "0e0")] == [1e301, None, 1e308, None, 0.0]
    assert str(read_number(-0.0)) == "0.0"
    assert type(read_number(np.float64(1.5))) is float


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [("dk", "d_k"), ("D_K", "d_k"), ("tital", "title"), ("scaling", "scalings"), ("max_scalar", "max_scalars")],
)
def test_unknown_key_suggests_the_nearest(key, suggestion):
    found = problems({key: 1})
    assert list(found) == [key]
    assert found[key].startswith("no such key; the keys are title, language")
    assert found[key].endswith(f" | {suggestion}")


def test_unknown_keys_at_any_depth():
    found = problems(
        {
            3: 4,
            None: 5,
            "a b": 1,
            "zzz": 1,
            "ensembles": {"a": {"family": "student_t", "df": 6, "ddf": 1}, "b": {"family": "aligned", "rho": 0, 7: 1}},
            "dumps": {"mine": {"file": "resources/minilm-l6-qk.npz", "scale": "none", "fil": "x"}},
        }
    )
    assert {"3", "null", "'a b'", "zzz", "ensembles.a.ddf", "ensembles.b[7]", "dumps.mine.scale"} <= set(found)
    assert found["ensembles.a.ddf"].endswith("| df")
    assert found["dumps.mine.scale"].endswith("| scaling")
    assert found["dumps.mine.fil"].endswith("| file")
    assert " | " not in found["zzz"]
    assert len(found) == 8


def test_nearest_of_a_value():
    assert problems({"scalings": ["1/sqrt(dk)"]})["scalings[0]"].endswith("| 1/sqrt(d_k)")
    assert problems({"language": "En"})["language"].endswith("| en")
    assert problems({"dumps": {"a": {"file": "resources/minilm-l6-qk.npz", "scaling": "1/dk"}}})[
        "dumps.a.scaling"
    ].endswith("| 1/d_k")
    assert nearest_name("GAUSIAN", ["uniform", "gaussian"]) == "gaussian"
    assert nearest_name("SUM_TO_1", ["product", "Sum_to_1"]) == "Sum_to_1"
    assert nearest_name("qqq", ["gaussian"]) is None
    assert nearest_name(3, ["gaussian"]) is None


@pytest.mark.parametrize("config", [None, [], "d_k: 4", 3])
def test_a_configuration_that_is_no_mapping(config):
    assert problems(config) == {"configuration": "allowed: a mapping of keys to values"}


def test_all_mistakes_at_once_in_the_order_of_the_schema():
    with pytest.raises(ConfigError) as caught:
        understood(
            {
                "tittle": "x",
                "dumps": {"mine": {"file": "no.npz", "scale": 1}},
                "n_keys": "4,8",
                "d_k": [8, 0, "8"],
                "seed": True,
                "ensembles": {
                    "Mine": {"family": "gausian"},
                    "b": {"family": "student_t", "dff": 6},
                    "c": {"family": "gaussian", "query_sd": -1, "key_sd": "x"},
                },
            }
        )
    assert [problem.key for problem in caught.value.problems] == [
        "seed",
        "d_k[2]",
        "d_k[1]",
        "ensembles.Mine",
        "ensembles.Mine.family",
        "ensembles.b.dff",
        "ensembles.b.df",
        "ensembles.c.query_sd",
        "ensembles.c.key_sd",
        "n_keys",
        "dumps.mine.scale",
        "dumps.mine.file",
        "tittle",
    ]
    text = str(caught.value)
    assert text.startswith("The configuration has 13 mistakes; nothing was run.\n  seed = true\n      allowed: ")
    assert "\n      did you mean gaussian?" in text
    assert "title" not in text
    assert text.endswith("\n  and 3 more")
    assert_readable(text)


def test_one_mistake_is_singular():
    with pytest.raises(ConfigError, match=r"^The configuration has 1 mistake; nothing was run\.\n"):
        understood({"seed": -1})


def test_a_result_is_a_fixed_point_and_leaves_its_input_alone():
    config = {"d_k": ["8", 4], "ensembles": {"b": {"family": "student_t", "df": "6"}, "a": None}}
    before = copy.deepcopy(config)
    schema = load_schema(ROOT / "workflow/schemas/config.schema.yaml")
    untouched = copy.deepcopy(schema)
    result = validate(config, schema, folders=[ROOT])
    assert understood(result) == result
    assert config == before
    assert schema == untouched
    result["d_k"].append(1)
    assert understood({})["d_k"] == DEFAULTS["d_k"]
