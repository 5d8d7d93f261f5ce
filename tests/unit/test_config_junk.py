"""Whatever is given as the configuration, the answer is a result or a readable refusal."""

import datetime
import decimal
import fractions
from collections import OrderedDict

import numpy as np
import pytest
from config_help import INF, NAN, SCHEMA, understood

from sqrtdk.config.messages import MISSING, Problem, key_text, show
from sqrtdk.config.sources import argument_problems, file_names, file_problems, literal_texts
from sqrtdk.config.validation import ConfigError


def deep(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def junk():
    loop, cycle = [1], {"a": 1}
    loop.append(loop)
    cycle["b"] = cycle
    return [
        *(0, -1, 8, 8.5, True, False, None, NAN, INF, -INF, -0.0, 1e300, 10**40, -(10**400), 10**5000, 2**64),
        *("", " ", "8", "-8", "nan", "1e999", "1e-999", "1" * 5000, "null", "~", "\x00", "\ud800", "🤷", "a" * 10000),
        *("[", "[[", "[" * 3000 + "]" * 3000, "[4, [8]]", "{", "{a: b}", "{a: {b: c}}", "!!python/name:os.system"),
        *("&a [*a]", "[&a [*a]]", "{? [x] : 1}"),
        *(b"8", {1, 2}, object(), len, datetime.date(2024, 1, 1), decimal.Decimal("NaN"), fractions.Fraction(1, 2), 1j),
        *(np.float64(8), np.int64(8), np.float32("nan"), np.arange(3), np.bool_(True)),
        *([], {}, (), deep(5), deep(5000), loop, cycle, OrderedDict(a=1), {None: 1, 3: 2}, {(1, 2): 3}, {NAN: NAN}),
        *({"family": "gaussian", "key_sd": object()}, {"family": ["gaussian"]}, {"family": "student_t", "df": loop}),
    ]


@pytest.mark.slow
def test_junk_never_raises_anything_but_a_refusal():
    rng = np.random.default_rng(20170612)
    pool = junk()
    pick = lambda: pool[rng.integers(len(pool))]  # noqa: E731
    keys = [
        *SCHEMA["properties"],
        "unknown",
        "D_K",
        "",
        3,
        10**5000,
        None,
        True,
        NAN,
        (1,),
        "\ud800",
        "x" * 5000,
        "a\nb",
    ]
    names = ["mine", "Mine", "", 3, None, "x" * 50, "\ud800", "minilm_l6_l0_h0", "gaussian\n"]
    families = ["gaussian", "student_t", "equicorrelated"]
    refused = 0
    for _ in range(200):
        config = {}
        for _ in range(rng.integers(1, 4)):
            key, name, form = keys[rng.integers(len(keys))], names[rng.integers(len(names))], rng.integers(5)
            spec = {"family": families[rng.integers(len(families))], "df": pick(), "query_rho": pick()}
            entry = {"ensembles": spec, "dumps": {"file": pick(), "scaling": pick()}}.get(key, {})
            # Something valid now and then, so that more is met than the first refusal.
            valid = SCHEMA["properties"].get(key, {}).get("examples", [None])[0]
            config[key] = [pick(), [pick(), pick()], {name: pick()}, {name: entry}, valid][form]
        try:
            result = understood(config)
        except ConfigError as error:
            refused += 1
            assert_encodable(str(error))
        else:
            assert understood(result) == result
            assert set(result) == set(SCHEMA["properties"])
    assert 80 < refused < 200


def assert_encodable(text):
    text.encode("utf-8")
    assert "NotUnderstood" not in text
    assert "Traceback" not in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_junk_text_in_files_and_arguments(tmp_path):
    rng = np.random.default_rng(1)
    letters = np.array(list("ab:{}[],'\"&*!?-|>%@ \n\t#~<0x1_8.e+"))
    path = tmp_path / "junk.yaml"
    for _ in range(150):
        text = "".join(rng.choice(letters, size=rng.integers(1, 30)))
        path.write_text(text)
        for problem in [*file_problems(path), *argument_problems([f"d_k={text}", text])]:
            assert_encodable(str(problem))
        file_names(path)
        literal_texts([f"title={text}"], SCHEMA)


def test_show_and_key_text_never_fail():
    for value in junk():
        shown = show(value)
        assert shown.isprintable()
        assert len(shown) < 2000
        assert key_text(("d_k", 3, "a b", "ü", value)).isprintable()
    assert key_text(("ensembles", "mine", "df")) == "ensembles.mine.df"
    assert key_text(("d_k", 3)) == "d_k[3]"
    assert str(Problem(("a",), MISSING, "required")) == "  a not given\n      required"
