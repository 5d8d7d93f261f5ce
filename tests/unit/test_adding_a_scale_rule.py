"""The guide's example rule, put where the guide says, works everywhere without another edit."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
USE = """
import math
import pandas as pd
from sqrtdk.config import guide, schema as schemas, validation
from sqrtdk.figures import style
from sqrtdk.report.tables import alternatives as tables
from sqrtdk.studies import alternatives
from sqrtdk.variants import notation as variants
from sqrtdk.figures import alternatives as figure
schema = schemas.load_schema("%s")
name = "cube_root"
given = {"scalings": ["none", "cube_root | soft_cap"], "alternatives": ["cube_root | softmax1"]}
understood = validation.validate(given, schema, folders=["%s"])
assert understood["scalings"] == given["scalings"]
names = variants.all_names(understood["alternatives"])
assert name in names and "cube_root | softmax1" in names
assert f"| `{name}` |" in guide.render(schema)
assert style.scaling(name).label
rows = pd.DataFrame([row for d_k in (8, 64) for row in alternatives.simulate(d_k, [8], names, seed=1)])
rows.insert(1, "kind", rows["variant"].map(variants.kind))
spread = rows[(rows["variant"] == name) & (rows["measure"] == "logit_std")]
assert list(spread["exact"]) == [8 ** (1 / 2 - 1 / 3), 64 ** (1 / 2 - 1 / 3)]
assert ((spread["estimate"] - spread["exact"]).abs() < 4.5 * spread["se"]).all()
assert name in [row[0].text for row in tables.scale_rules(rows).rows]
frames = {"alternatives": rows}
figure.describe(frames)
assert "cube_root" in set(figure.data(frames)["variant"])
assert name in [label.get_text() for label in figure.draw(frames).axes[0].get_yticklabels()]
"""


def test_the_example_of_the_guide(tmp_path):
    guide = (ROOT / "docs/adding-a-scale-rule.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    scripts = shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    rules = scripts / "sqrtdk/variants/scalings.py"
    text = rules.read_text(encoding="utf-8")
    rules.write_text(text.replace("_RULES = (\n", f"_RULES = (\n{example.rstrip()},\n", 1), encoding="utf-8")
    code = USE % (ROOT / "workflow/schemas/config.schema.yaml", ROOT)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=scripts, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
