"""Files of the configuration at the edges of YAML: one page that says why, before anything reads them further."""

import subprocess
import sys

import pytest
from config_help import ROOT, assert_page, understood

from sqrtdk.config.loading import load_file
from sqrtdk.config.validation import ConfigError

LAUGHS = "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)
EDGES = {
    "timestamp": (b'a: 1\nseed: !!timestamp "x"\n', "line 2: 'x' is no timestamp"),
    "no date": (b"seed: 2024-13-45\n", "line 1: '2024-13-45' is no timestamp"),
    "empty number": (b'seed: !!int ""\n', "line 1: '' is no int"),
    "truth": (b"seed: !!bool x\n", "line 1: 'x' is no bool"),
    "recursive list": (b"seed: &a [*a]\n", "line 1: an anchor that contains itself"),
    "recursive mapping": (b"ensembles: &a {gaussian: *a}\n", "line 1: an anchor that contains itself"),
    "laughs": (f"a: &a [1]\n{LAUGHS}".encode(), "more than 100000 values"),
    "latin-1": (b"title: caf\xe9\n", "is no text in UTF-8: byte 10 (0xe9)"),
    "utf-16": ("title: x\n".encode("utf-16"), "is no text in UTF-8: byte 0 (0xff)"),
    "brackets": (b"d_k: " + b"[" * 30 + b"]" * 30, "line 1: more than 20 brackets inside each other"),
    "open brackets": (b"d_k: " + b"[" * 5000, "nesting depth"),
    "blocks": ("\n".join(f"{' ' * depth}a:" for depth in range(30)).encode(), "line 21: more than 20"),
    "tab": (b"a:\n\t- b\n", "is no YAML: line 2"),
    "two documents": (b"seed: 1\n---\nseed: 2\n", "is no YAML: line 2"),
    "code": (b'seed: !!python/object/apply:os.system ["true"]\n', "is no YAML: line 1"),
    "scalar": (b"42\n", "holds 42; allowed: a mapping"),
    "control": (b"title: \x00\n", "is no YAML"),
}


@pytest.mark.parametrize(("content", "said"), EDGES.values(), ids=EDGES)
def test_a_file_that_is_no_configuration_is_refused_with_the_reason_and_its_place(tmp_path, content, said):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_file(path)
    assert said in str(caught.value)
    assert_page(str(caught.value))


def test_what_can_be_read_is_read_as_yaml_reads_it(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("common: &c {max_scalars: 1e6}\nensembles: {a: *c, b: {<<: *c, df: 6}}\n", encoding="utf-8")
    assert load_file(path)["ensembles"] == {"a": {"max_scalars": "1e6"}, "b": {"max_scalars": "1e6", "df": 6}}
    path.write_text("# nothing\n", encoding="utf-8")
    assert load_file(path) == {}


@pytest.mark.parametrize(
    "config",
    [
        {f"key_{number}": number for number in range(2000)},
        {"d_k": [-number for number in range(2000)]},
        {"ensembles": {f"E {number}": {"family": "gausian"} for number in range(1000)}},
        {"scalings": ["x" * 100_000] * 12, "x" * 100_000: 1},
        {f"{number}{'k' * 300}": ["v" * 300] * 1000 for number in range(30)},
    ],
    ids=["keys", "items", "entries", "text", "long keys"],
)
def test_endless_mistakes_are_told_on_a_page(config):
    with pytest.raises(ConfigError) as caught:
        understood(config)
    assert_page(str(caught.value))
    count = len(caught.value.problems)
    assert f"has {count} mistakes" in str(caught.value)
    assert str(caught.value).endswith(f"and {count - 10} more") == (count > 10)


@pytest.mark.slow
def test_make_says_it_before_snakemake_reads_the_file(tmp_path):
    overlay = tmp_path / "mine.yaml"
    overlay.write_bytes(EDGES["timestamp"][0])
    command = [sys.executable, str(ROOT / "scripts/run_snakemake.py"), "--cores", "1", "-n", "-d", str(tmp_path)]
    done = subprocess.run([*command, "--configfile", str(overlay)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert EDGES["timestamp"][1] in done.stderr
    assert "Traceback" not in done.stderr
    assert_page(done.stdout + done.stderr)
