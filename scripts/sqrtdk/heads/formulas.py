"""A scale as people write it in code: `head_dim**-0.5`, `1 / math.sqrt(d_k)`. Nothing is executed."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

WIDTH, KEYS, LAYER = ("d_k", "dk", "d_head", "head_dim", "head_size"), ("n_keys",), ("layer", "layer_idx")
NAMES = (*WIDTH, *KEYS, *LAYER)
"""Names of the width of a head, of the number of keys, and of the layer, counted as in the names of arrays."""
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "rsqrt": lambda x: x**-0.5,
}
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
LONGEST = 100
"""Characters; longer ones are no scale."""


class FormulaError(ValueError):
    """Text that is no formula of a scale: a few words on the part that is not."""


def formula(text: str) -> Callable[..., float]:
    """Return (d_k, n_keys, layer=0) -> the number that a formula gives.

    Numbers, + - * / **, brackets, NAMES (with `self.` or `config.` before them) and FUNCTIONS (with `math.`, `np.` or
    `torch.` before them) are known. Raises FormulaError for anything else; a division by zero gives inf.
    """
    if not text or len(text) > LONGEST:
        raise FormulaError("empty" if not text else "too long")
    try:
        tree = ast.parse(text.replace("√", "sqrt"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError("not a formula") from error
    _check(tree)

    def value(d_k: int, n_keys: int, layer: int = 0) -> float:
        known = dict.fromkeys(WIDTH, float(d_k)) | dict.fromkeys(KEYS, float(n_keys))
        try:
            found = _evaluate(tree, known | dict.fromkeys(LAYER, float(layer)))
        except (ZeroDivisionError, OverflowError):
            return math.inf
        except (ValueError, TypeError):  # TypeError: of a complex number, which a root of a negative one is
            return math.nan
        return found if isinstance(found, float) else math.nan

    return value


def _check(node: ast.expr) -> None:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return
        case ast.Name() | ast.Attribute():
            if _last(node) in NAMES or _last(node) in ("inf", "nan"):
                return
            raise FormulaError(f"'{ast.unparse(node)}' is not known")
        case ast.BinOp() if type(node.op) in _OPERATORS:
            _check(node.left)
            _check(node.right)
        case ast.UnaryOp() if type(node.op) in _OPERATORS:
            _check(node.operand)
        case ast.Call(args=[inner], keywords=[]) if _last(node.func) in (*FUNCTIONS, "float"):
            _check(inner)
        case _:
            raise FormulaError(f"'{ast.unparse(node)}' is not known")


def _last(node: ast.expr) -> str:
    """Return a name without what it is taken from."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _evaluate(node: ast.expr, known: dict[str, float]) -> Any:
    """Return the number of a checked formula, which is complex where a negative one has a root."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_evaluate(left, known), _evaluate(right, known))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_evaluate(operand, known))
        case ast.Call(func=func, args=[inner]):
            return FUNCTIONS.get(_last(func), float)(_evaluate(inner, known))
    name = _last(node)
    return known[name] if name in known else float(name)
