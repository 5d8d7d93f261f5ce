"""What configuration files and the command line lose on the way is found and named."""

import re
from pathlib import Path

import pytest
import yaml
from config_help import DEFAULTS, ROOT, SCHEMA, problems, snakemake_config, understood

from sqrtdk.config.sources import argument_problems, file_names, file_problems, literal_texts


def test_what_yaml_resolves_silently_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(
        "seed: 1\nseed: 2\nd_k: [010, 0x10, 1_000, 1:30, 8, 1e5, '010', .inf]\nensembles:\n  a: {family: uniform}\n"
        "  a: {family: laplace, key_sd: 1_0.5}\nprecision: 1.5e-3\n"
    )
    found = {problem.key: problem for problem in file_problems("mine.yaml")}
    assert set(found) == {"seed", "ensembles.a", *(f"d_k[{i}]" for i in range(4)), "ensembles.a.key_sd"}
    assert str(found["seed"]) == "  seed = '2'\n      given twice in mine.yaml, line 2, and before in line 1"
    assert "ensembles.a = {family: 'laplace', key_sd: '1_0.5'}" in str(found["ensembles.a"])
    assert "d_k[0] = '010'\n      YAML reads another number from this spelling (mine.yaml, line 3)" in str(
        found["d_k[0]"]
    )
    lines = [int(re.search(r"line (\d+)", problem.allowed)[1]) for problem in file_problems("mine.yaml")]
    assert lines == sorted(lines) == [2, 3, 3, 3, 3, 6, 6]
    Path("sub").mkdir()
    Path("mine.yaml").rename("sub/mine.yaml")
    assert "in sub/mine.yaml, line 2" in str(file_problems(tmp_path / "sub/mine.yaml")[0])
    assert problems({"seed": 2}, files=["sub/mine.yaml"])["seed"].startswith("given twice")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- 1\n",
        "5",
        "a: &x [*x, 1]",
        "? [1, 2]\n: 3",
        "a: [",
        "\x00",
        "<<: {a: 1}\n<<: {b: 2}",
        '{"a": 1, "b": NaN}',
    ],
)
def test_files_without_silent_changes(text, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    assert file_problems(tmp_path / "x.yaml") == []
    assert isinstance(file_names(tmp_path / "x.yaml"), dict)
    assert file_problems(tmp_path / "absent.yaml") == []


def test_a_repeated_key_may_hold_itself(tmp_path):
    (tmp_path / "x.yaml").write_text("a: 1\na: &x [*x]\n")
    assert "a = '...'" in str(file_problems(tmp_path / "x.yaml")[0])


def test_a_cached_copy_is_named_as_people_know_it(tmp_path):
    path = tmp_path / "snakemake-runtime-cache/tmpx/file/home/me/config/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("seed: 1\nseed: 1\n")
    assert "given twice in config/config.yaml, line 2" in str(file_problems(path)[0])


def test_overlays_keep_the_order_of_the_workflows_own_file(tmp_path):
    from snakemake.utils import update_config

    base, overlay = ROOT / "config/config.yaml", tmp_path / "overlay.yaml"
    overlay.write_text(
        "ensembles:\n  mine: {family: uniform}\n  aligned: null\n  student_t: {df: 6}\n  shifted: {query_mean: null}\n"
    )
    # As Snakemake merges: the overlay first, the workflow's own file, and the overlay again.
    config = {}
    for path in (overlay, base, overlay):
        update_config(config, yaml.safe_load(path.read_text()))
    assert next(iter(config["ensembles"])) == "mine"
    result = understood(config, files=[overlay, base])
    assert list(result["ensembles"]) == [*(n for n in DEFAULTS["ensembles"] if n != "aligned"), "mine"]
    assert result["ensembles"]["student_t"] == DEFAULTS["ensembles"]["student_t"] | {"df": 6.0}
    assert "query_mean" not in result["ensembles"]["shifted"]


def test_removing_what_is_not_there(tmp_path):
    (tmp_path / "mine.yaml").write_text("ensembles: {own: {family: uniform}, aligend: null}")
    files = [tmp_path / "mine.yaml", ROOT / "config/config.yaml"]
    config = {"ensembles": {"own": None, "aligned": None, "gaussian": {"family": "gaussian"}}}
    assert list(understood(config, files=files)["ensembles"]) == ["gaussian"]
    found = problems({"ensembles": {**config["ensembles"], "aligend": None, "onw": "null"}}, files=files)
    assert found == {
        "ensembles.aligend": "there is no entry of this name to remove | aligned",
        "ensembles.onw": "there is no entry of this name to remove | own",
    }


@pytest.mark.parametrize(
    ("argument", "key", "expected"),
    [
        ("d_k=[4,8]", "d_k", [4, 8]),
        ('d_k=["4", "8"]', "d_k", [4, 8]),
        ("d_k=64", "d_k", [64]),
        ("d_k=[1e3]", "d_k", [1000]),
        ("seed=8", "seed", 8),
        ('seed="8"', "seed", 8),
        ("precision=1e-3", "precision", 0.001),
        ("max_scalars=1e7", "max_scalars", 10**7),
        ("scalings=none", "scalings", ["none"]),
        ("scalings=[none,1/sqrt(d_k)]", "scalings", ["none", "1/sqrt(d_k)"]),
        ("title=hello world", "title", "hello world"),
        ("title=007", "title", "007"),
        ('title="007"', "title", "007"),
        ("title=Attention #1: {a} = [b]", "title", "Attention #1: {a} = [b]"),
        ("title='a' is \"b\"", "title", "'a' is \"b\""),
        ('title="a" or "b"', "title", '"a" or "b"'),
        ("title=null", "title", "null"),
        ("title=1_000", "title", "1_000"),
        ("dumps=null", "dumps", {}),
        ("training=~", "training", {}),
        ("title=True", "title", "True"),
    ],
)
def test_command_line_understood(argument, key, expected):
    result = understood(snakemake_config(argument), arguments=[argument])
    assert result == {**DEFAULTS, key: expected}
    assert type(result[key]) is type(expected)


def test_ensembles_on_the_command_line():
    argument = "ensembles={mine: {family: student_t, df: 6}, aligned: null, student_t: {df: 5}}"
    result = understood(snakemake_config(argument), arguments=[argument], files=[ROOT / "config/config.yaml"])[
        "ensembles"
    ]
    assert list(result) == [*(name for name in DEFAULTS["ensembles"] if name != "aligned"), "mine"]
    assert result["mine"] == {"family": "student_t", "df": 6.0}
    assert result["student_t"] == DEFAULTS["ensembles"]["student_t"] | {"df": 5.0}


@pytest.mark.parametrize(
    ("argument", "key", "words"),
    [
        ("flag=false", "flag", "no such key"),
        ("d_k=4,8", "d_k", "several as in [a, b]"),
        ("d_k=8 8", "d_k", "several as in [a, b]"),
        ("d_k=[4,8", "d_k", "a list of 1 to 100 values"),
        ("d_k=[8,08]", "d_k[1]", "a whole number"),
        ("seed=nan", "seed", "a whole number"),
        ("seed=0x10", "seed", "a whole number"),
        ("seed=1_000", "seed", "write it in plain digits"),
        ("precision=0_1e-2", "precision", "write it in plain digits"),
        ("seed={}", "seed", "changes nothing"),
        ("training={}", "training", "null takes out all of them"),
        ("ensembles={}", "ensembles", "null takes out an entry by its name"),
        ("seed=True", "seed", "a whole number"),
        ("seed=", "seed", "a whole number"),
        ("seed=9007199254740993.0", "seed", "a whole number"),
        ("title=", "title", "text of 1 to 200 characters"),
        ("ensembles=null", "ensembles", "named entries"),
        ("ensembles=gaussian", "ensembles", "named entries"),
        ("ensembles={x:{family:gaussian}}", "ensembles.x.family", "'family:gaussian' needs a space after its colon"),
        ("ensembles={x: {family: uniform}, x: {family: laplace}}", "ensembles.x", "given twice on the command line"),
    ],
)
def test_command_line_refused(argument, key, words):
    found = problems(snakemake_config(argument), arguments=[argument])
    assert key in found
    assert words in found[key]


@pytest.mark.parametrize(("key", "words"), [("dumps", "all of them"), ("training", "all of them"), ("seed", "a value")])
def test_an_empty_mapping_in_an_overlay_is_told_apart_from_one_in_the_workflows_own_file(tmp_path, key, words):
    (tmp_path / "mine.yaml").write_text(f"{key}: {{}}")
    found = problems({}, files=[tmp_path / "mine.yaml", ROOT / "config/config.yaml"])
    assert words in found[key]
    if key != "seed":
        assert understood({key: {}}, files=[tmp_path / "mine.yaml"])[key] == {}


def test_a_key_given_twice_on_the_command_line():
    (problem,) = argument_problems(["seed=1", "d_k=8", "seed=2"])
    assert str(problem) == "  seed = '2'\n      given twice on the command line, before as '1'"
    # Snakemake merges mappings.
    assert argument_problems(["ensembles={a: {family: uniform}}", "ensembles={b: {family: uniform}}"]) == []
    assert literal_texts(["seed=1", "title=a=b"], SCHEMA) == {"title": "a=b"}
