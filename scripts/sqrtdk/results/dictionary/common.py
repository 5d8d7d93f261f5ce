"""Columns that several files have."""

from sqrtdk.results.columns import Field, number, text, whole

ENSEMBLE = text("name in the configuration")
D_K = whole("width of one head")
N_KEYS = whole("keys in a row")
SCALING = text("scale rule")
MEASURE = text("name of the measure")
THEORY = number("exact value where there is one")
N_ROWS = whole("rows measured")
N_BLOCKS = whole("independent blocks behind the standard error")
BLOCK_SE = number("its standard error, from between independent blocks")


def with_se(**meanings: str) -> dict[str, Field]:
    """Return a column for each estimate and one, `<name>_se`, for its standard error."""
    return _with({"se": "its standard error"}, meanings)


def with_interval(**meanings: str) -> dict[str, Field]:
    """Return columns for each estimate, the ends of its 95 % interval and its standard error."""
    ends = {"low": "lower end of its 95 % interval", "high": "upper end of its 95 % interval"}
    return _with(ends | {"se": "its standard error"}, meanings)


def _with(more: dict[str, str], meanings: dict[str, str]) -> dict[str, Field]:
    columns = {}
    for name, meaning in meanings.items():
        columns[name] = number(meaning)
        columns |= {f"{name}_{end}": number(words) for end, words in more.items()}
    return columns
