"""What the figures on training share: looks and words of trained rules."""

from sqrtdk import style


def looks(names) -> dict:
    """Return a look for each rule that was trained: the known one, or the next free one under the rule's own name."""
    names = list(dict.fromkeys(names))
    free = style.ensembles([name for name in names if not _known(name)])
    return {name: style.scaling(name) if _known(name) else free[name] for name in names}


def words(name: str) -> str:
    """Return a rule in the words of a sentence."""
    return style.scaling_words(name) if _known(name) else f"with {name}"


def _known(name: str) -> bool:
    try:
        style.scaling(name)
        style.scaling_words(name)
    except style.UnknownKey:
        return False
    return True


def experiment(rows) -> str:
    """Name an experiment: its task and its optimiser, and its own name where that says more."""
    first = rows.iloc[0]
    optimiser = {"sgd": "gradient descent", "adam": "Adam"}.get(first["optimiser"], first["optimiser"])
    task = {"text": "English text"}.get(first["task"], first["task"])
    usual = (first["task"], f"{first['task']}_{first['optimiser']}")
    return f"{task}, {optimiser}" + ("" if first["experiment"] in usual else f" ({first['experiment']})")


def rate(value: float) -> str:
    """Spell a learning rate as it was written."""
    return f"{value:g}"
