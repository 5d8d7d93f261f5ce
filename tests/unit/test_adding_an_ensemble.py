"""The guide's example family, saved as the guide says, works everywhere without another edit."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
USE = """
import math
import yaml
from sqrtdk.config import guide, schema as schemas, validation
from sqrtdk.sampling import ensembles, moments
spec = {"family": "triangular", "query_mean": 0.5}
ensemble = ensembles.build(spec)
schema = schemas.load_schema("%s")
assert validation.validate({"ensembles": {"mine": spec}}, schema, folders=["%s"])["ensembles"]["mine"] == spec
for d_k in (1, 8):
    row = moments.simulate_cell(ensemble, d_k, "mine", 1, 0.005, 1e7)["row"]
    for name in ("mean", "variance", "within_row_variance", "excess_kurtosis"):
        z = (row[name] - row["exact_" + name]) / row[name + "_se"]
        assert abs(z) < 4.5, (d_k, name, z)
assert "### triangular" in guide.render(schema)
"""


def test_the_example_of_the_guide(tmp_path):
    guide = (ROOT / "docs/adding-an-ensemble.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    scripts = shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "sqrtdk/sampling/ensembles/triangular.py").write_text(example, encoding="utf-8")
    code = USE % (ROOT / "workflow/schemas/config.schema.yaml", ROOT)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=scripts, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_yaml_of_the_guide_is_understood():
    import yaml

    from sqrtdk.config import validation

    guide = (ROOT / "docs/adding-an-ensemble.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    schema = validation.load_schema(ROOT / "workflow/schemas/config.schema.yaml")
    understood = validation.validate(yaml.safe_load(example), schema, folders=[ROOT])
    assert set(understood["ensembles"]) == {"heavy", "skewed"}
