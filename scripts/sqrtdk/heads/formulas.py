"""A scale as people write it in code: `head_dim**-0.5`, `1 / math.sqrt(q.size(-1))`. Nothing is executed."""

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

WIDTH = ("d_k", "dk", "d_head", "dim_head", "head_dim", "qk_head_dim", "head_size", "attention_head_size", "key_size")
KEYS, LAYER = ("n_keys",), ("layer", "layer_idx")
NAMES = (*WIDTH, *KEYS, *LAYER)
"""Names of the width of a head, of the number of keys, and of the layer, counted as in the names of arrays."""
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log2": math.log2,
    "rsqrt": lambda x: x**-0.5,
}
_VECTORS = ("q", "query", "queries", "k", "key", "keys")
"""Tensors whose last axis is the width of a head."""
_WRAPPERS = ("float", "tensor", "array")
"""What a number is put into and stays that number."""
_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
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

    Numbers, + - * / // **, brackets, NAMES (with `self.` or `config.` before them), `q.shape[-1]`, `q.size(-1)`, pow
    and FUNCTIONS (with `math.`, `np.` or `torch.` before them) are known. Raises FormulaError for anything else; a
    division by zero gives inf.
    """
    if not text or len(text) > LONGEST:
        raise FormulaError("empty" if not text else "too long")
    try:
        text = re.sub(r"√\s*([\w.]+)", r"sqrt(\1)", text).replace("√", "sqrt")
        tree = _Plain().visit(ast.parse(text, mode="eval")).body
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


class _Plain(ast.NodeTransformer):
    """Write pow(a, b) as a**b, and the length of the last axis of q or k as d_k."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=func, args=[base, exponent], keywords=[]) if _last(func) in ("pow", "power"):
                return ast.BinOp(base, ast.Pow(), exponent)
            case ast.Call(func=ast.Attribute(value=vectors, attr="size"), args=[axis], keywords=[]):
                return _width_of(vectors, axis) or node
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node.value:
            case ast.Attribute(value=vectors, attr="shape"):
                return _width_of(vectors, node.slice) or node
        return node


def _width_of(vectors: ast.expr, axis: ast.expr) -> ast.Name | None:
    """Return the name of the width of a head, where that is what an axis of some tensor is."""
    return ast.Name(WIDTH[0]) if _last(vectors) in _VECTORS and ast.unparse(axis) == "-1" else None


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
        case ast.Call(args=[inner], keywords=[]) if _last(node.func) in (*FUNCTIONS, *_WRAPPERS):
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
