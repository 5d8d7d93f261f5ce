"""The command: exit codes, tables, pages, CSV, hostile names, and memory."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import audit_files
import numpy as np
import pytest

from sqrtdk.__main__ import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def dump(tmp_path):
    q, k = audit_files.normal(d=64)
    np.savez(tmp_path / "a.npz", q=q, k=k)
    return str(tmp_path / "a.npz")


class TestExitCodes:
    @pytest.mark.parametrize(
        ("options", "code"),
        [
            (["--scale", "1/sqrt(d_k)"], 0),
            (["--scale", "0.125", "--mask", "causal", "--layout", "HSD", "--stage", "init"], 0),
            (["--scale", "none"], 1),
            (["--scale", "none", "--convention", "folded"], 0),
            (["--scale", "0.2"], 0),
            (["--scale", "x"], 2),
            (["--convention", "x"], 2),
            (["--layout", "x"], 2),
            (["--layout", "BHSD"], 2),
            (["--mask", "nowhere.npy"], 2),
            (["--csv", "/nowhere/a.csv"], 2),
            (["--scale", "1e200"], 2),
        ],
    )
    def test_they_say_the_verdict(self, dump, capsys, options, code):
        assert main(["audit", dump, *options]) == code
        told = capsys.readouterr()
        assert (told.out == "") == (code == 2)
        assert told.err.count("\n") == (code == 2)

    @pytest.mark.parametrize("options", [["--stage", "late"], ["--d-v", "0"], ["--unknown"], []])
    def test_the_command_line_itself(self, options, capsys):
        with pytest.raises(SystemExit) as left:
            main(["audit", *(["a.npz"] if options else []), *options])
        assert left.value.code == 2
        assert capsys.readouterr().err

    def test_unusable_input_is_one_line_that_names_it(self, tmp_path, capsys):
        (tmp_path / "bad.npz").write_bytes(b"")
        assert main(["audit", str(tmp_path / "bad.npz")]) == 2
        assert capsys.readouterr().err == f"sqrtdk audit: {tmp_path / 'bad.npz'}: is empty\n"

    def test_help_and_version(self, capsys):
        assert main(["--help"]) == 0
        assert main(["--version"]) == 0
        assert main([]) == 2
        assert "sqrtdk audit" in capsys.readouterr().out

    @pytest.mark.slow
    def test_as_a_module(self, dump):
        command = [sys.executable, "-W", "error", "-m", "sqrtdk", "audit", dump, "--scale", "none"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "scripts")
        assert done.returncode == 1, done.stderr
        assert "BUG wrong scale: no scale" in done.stdout

    @pytest.mark.slow
    def test_a_reader_that_stops_early(self, dump):
        command = f"{sys.executable} -m sqrtdk audit {dump} --scale none | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT / "scripts")
        assert (done.returncode, done.stderr) == (1, "")


class TestOutputs:
    def test_the_terminal_says_what_was_assumed(self, dump, capsys):
        main(["audit", dump])
        told = capsys.readouterr().out
        assert "2 heads: no bug found." in told
        assert "ASSUMED" in told
        assert "Assumed: axes read as (head, token, d_k)" in told
        assert "exchangeable" in told
        assert "of which reading the arrays" in told

    def test_many_heads_are_shortened_and_the_worst_come_first(self, tmp_path, capsys):
        q, k = audit_files.normal(heads=50, n=20)
        q[44] *= 200
        np.savez(tmp_path / "a.npz", q=q, k=k)
        main(["audit", str(tmp_path / "a.npz"), "--scale", "0.25"])
        lines = capsys.readouterr().out.splitlines()
        first = next(i for i, line in enumerate(lines) if line.lstrip().startswith("head "))
        assert lines[first + 1].split()[:2] == ["0.44", "note"]
        assert any("10 more heads" in line for line in lines)

    def test_csv_has_all_facts_at_full_precision(self, dump, tmp_path):
        main(["audit", dump, "--scale", "0.125", "--csv", str(tmp_path / "a.csv")])
        rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8"))))
        assert [(row["layer"], row["head"], row["verdict"]) for row in rows] == [
            ("0", "0", "healthy"),
            ("0", "1", "healthy"),
        ]
        with np.load(dump) as arrays:
            scores = arrays["q"][0] @ arrays["k"][0].T
        assert float(rows[0]["logit_max"]) == pytest.approx(scores.max() / 8, rel=1e-12)

    def test_the_page_escapes_and_runs_nothing(self, tmp_path):
        q, k = audit_files.normal(d=64)
        name = "<script>alert(1)</script>&.npz".replace("/", "")
        np.savez(tmp_path / name, q=q, k=k)
        assert main(["audit", str(tmp_path / name), "--scale", "1", "--html", str(tmp_path / "a.html")]) == 1
        page = (tmp_path / "a.html").read_text(encoding="utf-8")
        assert "<script" not in page
        assert "&lt;script&gt;alert(1)&lt;script&gt;&amp;.npz" in page
        assert "default-src 'none'" in page
        assert "http://" not in page
        assert "https://" not in page
        assert "no scale" in page

    @pytest.mark.parametrize("option", ["--csv", "--html"])
    def test_no_input_is_written_over(self, dump, tmp_path, capsys, option):
        np.save(tmp_path / "mask.npy", np.ones((40, 40)))
        (tmp_path / "link.npz").symlink_to(dump)
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        for name in ("a.npz", "link.npz", "mask.npy"):
            assert main(["audit", dump, "--mask", str(tmp_path / "mask.npy"), option, str(tmp_path / name)]) == 2
            assert "would be overwritten" in capsys.readouterr().err
        assert main(["audit", dump, "--csv", str(tmp_path / "b"), "--html", f"{tmp_path}/../{tmp_path.name}/b"]) == 2
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    @pytest.mark.slow
    def test_a_terminal_of_ascii(self, dump):
        command = [sys.executable, "-m", "sqrtdk", "audit", dump, "--scale", "none"]
        environment = os.environ | {"PYTHONIOENCODING": "ascii"}
        for arguments, code in ((command, 1), ([*command, "--help"], 0)):
            done = subprocess.run(arguments, capture_output=True, cwd=ROOT / "scripts", env=environment)
            assert (done.returncode, done.stderr) == (code, b"")
            assert b"\\xb7" in done.stdout

    @pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes only there")
    def test_names_that_are_no_utf8(self, dump, tmp_path):
        odd = tmp_path / os.fsdecode(b"a\xff.npz")
        odd.write_bytes(Path(dump).read_bytes())
        outputs = ["--csv", str(tmp_path / "a.csv"), "--html", str(tmp_path / "a.html")]
        assert main(["audit", str(odd), "--scale", "0.125", *outputs]) == 0
        assert "a\\udcff.npz" in (tmp_path / "a.csv").read_text(encoding="utf-8")

    def test_control_characters_do_not_reach_the_terminal(self, tmp_path, capsys):
        (tmp_path / "a\x1b[31m.npz").write_bytes(b"")
        main(["audit", str(tmp_path / "a\x1b[31m.npz")])
        assert "\x1b" not in capsys.readouterr().err


PEAK = """
import sys
from pathlib import Path
from sqrtdk.__main__ import main

main(["audit", sys.argv[1], "--scale", "0.0625", "--layout", "LHSD"])
status = Path("/proc/self/status").read_text() if Path("/proc/self/status").exists() else ""
if status:  # The peak of getrusage includes that of the process before, which started this one.
    peak = int(status.split("VmHWM:")[1].split()[0])
else:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak / 1024, file=sys.stderr)
"""


def peak(path) -> float:
    """Return the largest memory of an audit in MB."""
    command = [sys.executable, "-c", PEAK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "scripts")
    assert done.returncode == 0, done.stderr
    return float(done.stderr)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_heads(tmp_path):
    """A dump of 48 MB and the table of its heads take a few MB more than a dump of one head."""
    x = np.random.default_rng(1).normal(size=(48, 4, 128, 256)).astype(np.float32)
    np.savez(tmp_path / "small.npz", q=x[:1, :1], k=x[:1, :1])
    np.savez(tmp_path / "plain.npz", q=x, k=x)
    np.savez_compressed(tmp_path / "packed.npz", q=x, k=x)
    small, *large = (peak(tmp_path / f"{name}.npz") for name in ("small", "plain", "packed"))
    assert max(large) - small < 12, (small, large)
