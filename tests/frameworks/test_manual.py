"""The examples of the manual that take a model, as they stand there."""

import re
from pathlib import Path

import architectures
import pytest

import sqrtdk

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = {
    f"{path.name} {place}": text
    for path in [DOCS / "audit.md", *sorted((DOCS / "problems").glob("*.md"))]
    for place, text in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))
    if "model" in text
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name, monkeypatch, tmp_path, capsys):
    (one,) = (one for one in architectures.ARCHITECTURES if one.name == "Llama")
    model, batch = architectures.build(one)
    logged = []
    names = {
        **{"sqrtdk": sqrtdk, "model": model, "batch": batch, "batches": [batch] * 2, "scaler": None},
        **{"log": logged.append, "train_one_step": lambda batch=batch: model(**batch)},
    }
    monkeypatch.chdir(tmp_path)
    text = EXAMPLES[name].replace("layers=[3]", "layers=[1]").replace("rows[5]", "rows[1]")
    exec(text, names)
    if "monitor" in names:
        names["monitor"].detach()
    if "capture" in text and "print" in text:
        assert "healthy" in capsys.readouterr().out
    if "log(" in text:
        assert logged[-1]["attention/max_logit"] > 0
