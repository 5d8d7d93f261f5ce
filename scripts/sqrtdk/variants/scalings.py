"""Scale rules: how scores q·k become logits. A new rule is one entry in `_RULES`, and is then known everywhere."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqrtdk.sampling.parameters import Parameter

RULE, MODEL, MISTAKE = "rule", "model", "mistake"


@dataclass(frozen=True)
class Scaling:
    """A scale rule; exactly one of `factor`, `size` and `cosine` says what the logits are.

    name: how the configuration and the tables spell it. label: how a figure spells it (Matplotlib mathtext).
    formula: the factor in the subset of TeX that the report reads. source: where it is proposed or used.
    factor: (d_k, n_keys, **parameters) -> the positive number that multiplies q·k.
    size: name of a size h in `sizes`: the logits are q·k/h, with h over a row or over all `rows` of a block.
    cosine: (d_k, n_keys, **parameters) -> the number that multiplies the cosine of q and k.
    kind: a rule, what a published model does, or a mistake; `remark` says what is right or wrong with it.
    """

    name: str
    label: str
    formula: str
    source: str
    factor: Callable[..., float] | None = None
    size: str | None = None
    rows: bool = False
    cosine: Callable[..., float] | None = None
    parameters: tuple[Parameter, ...] = ()
    kind: str = RULE
    remark: str = ""

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.factor, self.size, self.cosine)) != 1:
            raise TypeError(f"the scale rule {self.name!r} needs exactly one of factor, size and cosine")


LEAST, MOST = 1e-6, 1e4  # ASSUME
"""Parameters outside are no attention that anybody runs, and beyond what theory is tabulated for."""


def _positive(name: str, description: str, default: float, high: float = MOST) -> tuple[Parameter, ...]:
    return (Parameter(name, description, default, LEAST, high, low_open=False, high_open=False),)


_ROOT = r"\frac{1}{\sqrt{d_k}}"
_S = "S"

_RULES = (
    Scaling(
        "none",
        "unscaled",
        "1",
        "Luong et al. 2015, dot-product attention; Raffel et al. 2020 (T5), with the scale in the weights",
        lambda d_k, n_keys: 1.0,
    ),
    Scaling(
        "1/sqrt(d_k)",
        r"$1/\sqrt{d_k}$",
        _ROOT,
        "Vaswani et al. 2017, section 3.2.1",
        lambda d_k, n_keys: 1 / math.sqrt(d_k),
    ),
    Scaling(
        "1/d_k",
        r"$1/d_k$",
        r"\frac{1}{d_k}",
        "Yang et al. 2022 (maximal update parametrisation)",
        lambda d_k, n_keys: 1 / d_k,
    ),
    Scaling(
        "8/d_k",
        r"$8/d_k$",
        r"\frac{8}{d_k}",
        "Yang et al. 2022: equal to 1/√d_k at d_k = 64",
        lambda d_k, n_keys: 8 / d_k,
    ),
    Scaling(
        "learnable",
        r"$g/\sqrt{d_k}$",
        r"\frac{g}{\sqrt{d_k}}",
        "a learned scalar g per head, here at its initial value",
        lambda d_k, n_keys, g: g / math.sqrt(d_k),
        parameters=_positive("g", "value of g", 1.0),
        remark="exactly redundant in what it can express: W_q absorbs g",
    ),
    Scaling(
        "ln(n)/d_k",
        r"$\ln n/d_k$",
        r"\frac{\ln n}{d_k}",
        "Su 2021: entropy that does not depend on the number of keys",
        lambda d_k, n_keys: math.log(n_keys) / d_k if n_keys > 1 else 1 / d_k,
    ),
    Scaling(
        "sqrt(ln(n)/d_k)",
        r"$\sqrt{\ln n/d_k}$",
        r"\sqrt{\frac{\ln n}{d_k}}",
        "the threshold √(2 ln n) of random logits (Derrida 1981)",
        lambda d_k, n_keys: math.sqrt(math.log(n_keys) / d_k) if n_keys > 1 else 1 / math.sqrt(d_k),
    ),
    Scaling(
        "ssmax",
        r"SSMax $s\,\ln n/\sqrt{d_k}$",
        r"\frac{s \, \ln n}{\sqrt{d_k}}",
        "Nakanishi 2025 (Scalable-Softmax)",
        lambda d_k, n_keys, s: s * math.log(max(n_keys, 2)) / math.sqrt(d_k),
        parameters=_positive("s", "learned slope", 0.43),
    ),
    Scaling(
        "row_std",
        "row std",
        r"\frac{1}{\operatorname{std}( S )}",
        "standard deviation of the row's own scores",
        size="STD",
    ),
    Scaling(
        "row_mean_abs",
        "row mean |S|",
        r"\frac{1}{\operatorname{mean} | S |}",
        "mean absolute value of the row's own scores",
        size="MEAN_ABS",
    ),
    Scaling(
        "row_median_abs",
        "row median |S|",
        r"\frac{1}{\operatorname{median} | S |}",
        "median absolute value of the row's own scores",
        size="MEDIAN_ABS",
    ),
    Scaling(
        "row_max_abs",
        "row max |S|",
        r"\frac{1}{\max | S |}",
        "largest absolute value of the row's own scores",
        size="MAX_ABS",
    ),
    Scaling(
        "global_std",
        "global std",
        r"\frac{1}{\operatorname{std}( Q K^\top )}",
        "standard deviation of all scores of the head",
        size="STD",
        rows=True,
    ),
    Scaling(
        "global_mean_abs",
        "global mean |S|",
        r"\frac{1}{\operatorname{mean} | Q K^\top |}",
        "mean absolute value of all scores of the head",
        size="MEAN_ABS",
        rows=True,
    ),
    Scaling(
        "global_median_abs",
        "global median |S|",
        r"\frac{1}{\operatorname{median} | Q K^\top |}",
        "median absolute value of all scores of the head",
        size="MEDIAN_ABS",
        rows=True,
    ),
    Scaling(
        "global_max_abs",
        "global max |S|",
        r"\frac{1}{\max | Q K^\top |}",
        "largest absolute value of all scores of the head",
        size="MAX_ABS",
        rows=True,
    ),
    Scaling(
        "qk_norm",
        r"QK-norm $g\cos$",
        r"\frac{g}{\| q \| \| k \|}",
        "Henry et al. 2020 (QKNorm): L2-normalised q and k and a learned g",
        cosine=lambda d_k, n_keys, g: g,
        parameters=_positive("g", "multiplier of the cosine", 10.0),
        remark="g is needed here, and has to grow as √d_k for logits of one size",
    ),
    Scaling(
        "qk_norm_length",
        r"QK-norm $g_0(L)\cos$",
        r"\frac{\log_2 ( L^2 - L )}{\| q \| \| k \|}",
        "Henry et al. 2020: initial g from the 97.5th percentile L of the sequence lengths",
        cosine=lambda d_k, n_keys, length: math.log2(length**2 - length),
        parameters=(Parameter("length", "97.5th percentile of the lengths", 72.0, low=2, high=1e9, high_open=False),),
    ),
    Scaling(
        "cosine",
        r"$\cos/\tau$",
        r"\frac{1}{\tau \, \| q \| \| k \|}",
        "Liu et al. 2022 (Swin V2): cosine attention, τ = 0.1 at the start",
        cosine=lambda d_k, n_keys, temperature: 1 / temperature,
        parameters=_positive("temperature", "temperature τ", 0.1),
    ),
    Scaling(
        "qk_rmsnorm",
        r"RMSNorm(q, k), $1/\sqrt{d_k}$",
        r"\frac{\sqrt{d_k}}{\| q \| \| k \|}",
        "Dehghani et al. 2023 (ViT-22B) and others: q and k normalised per head, then 1/√d_k",
        cosine=lambda d_k, n_keys: math.sqrt(d_k),
        remark="1/√d_k is still needed: normalised q·k has variance d_k",
    ),
    Scaling(
        "yarn",
        r"YaRN $(0.1\ln t+1)^2/\sqrt{d_k}$",
        r"\frac{( 0.1 \ln t + 1 )^2}{\sqrt{d_k}}",
        "Peng et al. 2023 (YaRN): context stretched t times",
        lambda d_k, n_keys, stretch: (0.1 * math.log(stretch) + 1) ** 2 / math.sqrt(d_k),
        parameters=(
            Parameter(
                "stretch",
                "how many times longer the context is",
                16.0,
                low=1,
                low_open=False,
                high=1e9,
                high_open=False,
            ),
        ),
        kind=MODEL,
    ),
    Scaling(
        "qwen_logn",
        r"Qwen $\log_{L} n/\sqrt{d_k}$",
        r"\frac{\max ( 1 , \log_L n )}{\sqrt{d_k}}",
        "Bai et al. 2023 (Qwen): beyond the trained length L",
        lambda d_k, n_keys, trained: max(1.0, math.log(n_keys) / math.log(trained)) / math.sqrt(d_k),
        parameters=(Parameter("trained", "length L in training", 2048.0, low=1, high=1e9, high_open=False),),
        kind=MODEL,
    ),
    Scaling(
        "fixed_width",
        r"$1/\sqrt{w}$",
        r"\frac{1}{\sqrt{w}}",
        "Gemma 2 and 3: query_pre_attn_scalar w, whatever the width of the head",
        lambda d_k, n_keys, width: 1 / math.sqrt(width),
        parameters=_positive("width", "the width w it is right for", 64.0, high=1e7),
        kind=MODEL,
        remark="right at one width only",
    ),
    Scaling(
        "constant",
        "$c$",
        "c",
        "Granite: attention_multiplier, 1/64 or 1/128",
        lambda d_k, n_keys, c: c,
        parameters=_positive("c", "the factor", 0.015625),
        kind=MODEL,
    ),
    Scaling(
        "d_model_for_d_k",
        r"$1/\sqrt{d_{model}}$",
        r"\frac{1}{\sqrt{h \, d_k}}",
        "the width of the model in place of the width of one of its h heads",
        lambda d_k, n_keys, heads: 1 / math.sqrt(heads * d_k),
        parameters=(Parameter("heads", "number of heads", 8.0, low=1, low_open=False, high=1e9, high_open=False),),
        kind=MISTAKE,
        remark="logits √h times too small",
    ),
    Scaling(
        "heads_for_d_k",
        r"$1/\sqrt{h}$",
        r"\frac{1}{\sqrt{h}}",
        "the number of heads in place of their width",
        lambda d_k, n_keys, heads: 1 / math.sqrt(heads),
        parameters=(Parameter("heads", "number of heads", 8.0, low=1, low_open=False, high=1e9, high_open=False),),
        kind=MISTAKE,
        remark="logits √(d_k/h) times too large",
    ),
    Scaling(
        "d_v_for_d_k",
        r"$1/\sqrt{d_v}$",
        r"\frac{1}{\sqrt{r \, d_k}}",
        "the width d_v = r·d_k of the values in place of that of the keys",
        lambda d_k, n_keys, ratio: 1 / math.sqrt(ratio * d_k),
        parameters=_positive("ratio", "d_v over d_k", 2.0),
        kind=MISTAKE,
        remark="logits √r times too small",
    ),
    Scaling(
        "applied_twice",
        r"$1/\sqrt{d_k}$ twice",
        r"\frac{1}{\sqrt{d_k}} \cdot \frac{1}{\sqrt{d_k}}",
        "once in the code and once in the library, or on q and on k",
        lambda d_k, n_keys: 1 / d_k,
        kind=MISTAKE,
        remark="the number of 1/d_k, without its learning rates",
    ),
    Scaling(
        "inverted",
        r"$\sqrt{d_k}$",
        r"\sqrt{d_k}",
        "multiplied in place of divided",
        lambda d_k, n_keys: math.sqrt(d_k),
        kind=MISTAKE,
        remark="logits d_k times too large",
    ),
    Scaling(
        "qk_norm_and_root",
        r"$\cos/\sqrt{d_k}$",
        r"\frac{1}{\sqrt{d_k} \, \| q \| \| k \|}",
        "L2-normalised q and k with 1/√d_k left in place and no g",
        cosine=lambda d_k, n_keys: 1 / math.sqrt(d_k),
        kind=MISTAKE,
        remark="attention stays uniform: logits of variance 1/d_k²",
    ),
    Scaling(
        "qk_rmsnorm_unscaled",
        "RMSNorm(q, k), no scale",
        r"\frac{d_k}{\| q \| \| k \|}",
        "q and k normalised per head, and the scale dropped because of it",
        cosine=lambda d_k, n_keys: float(d_k),
        kind=MISTAKE,
        remark="logits √d_k times too large",
    ),
)

SCALINGS: dict[str, Scaling] = {rule.name: rule for rule in _RULES}
"""Every scale rule by name, in the order in which figures and tables show them."""


def names() -> list[str]:
    """Return the names of all scale rules, in order."""
    return list(SCALINGS)


def inline_formula(name: str) -> str | None:
    """Return the factor of a rule as TeX for a line of text, None unless it is one of d_k and n_keys alone."""
    rule = SCALINGS.get(name)
    if rule is None or rule.factor is None or rule.parameters or rule.kind != RULE:
        return None
    return re.sub(r"^\\frac\{1\}\{(.+)\}$", r"1 / \1", rule.formula)
