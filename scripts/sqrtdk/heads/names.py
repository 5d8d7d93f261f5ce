"""What the name of an array says: queries, keys, scores, a mask, or what is done to the scores, and of which layer."""

import re
from collections.abc import Collection

ROLES = {
    "q": ("q", "query", "queries"),
    "k": ("k", "key", "keys"),
    "scores": ("scores", "score", "logits"),
    "mask": ("mask", "attentionmask", "attnmask"),
    "divisor": ("attnscale",),
}
BESIDE = ("scale", "divisor", "causal", "softcap", "window", "sinks", "positions", "gains", "expected")
"""Roles of what stands beside queries and keys: numbers that turn q·k into logits (docs/file-format.md)."""
ROLES |= {name: (name,) for name in BESIDE if name not in ROLES}
PARAMETERS = ("weight", "bias")
_LENS = re.compile(r"hook_(?:rot_)?(q|k|attn_scores)$")
"""TransformerLens' names, whose axes are (batch, token, head, d_k)."""
_AFTER = re.compile(r"\*[._](proj|lin|linear|states?|heads?|out|output)$")


def split_name(key: str) -> tuple[str | None, str, list[int]]:
    """Return the role that a name says, the name without it, and the numbers in the name.

    `layers.3.self_attn.q`, `layer3_query` and `q3` are queries of layer 3. Weights and biases have no role.
    """
    text = _LENS.sub(lambda found: found[1].replace("attn_", ""), key)
    for words in ("attention_mask", "attn_mask", "attn_scale"):
        text = text.replace(words, words.replace("_", ""))
    pieces = re.split(r"([._/:\- ]+|(?<=[A-Za-z])(?=[0-9]))", text)
    for place in range(len(pieces) - 1, -1, -1):
        for role, names in ROLES.items():
            if pieces[place].lower() in names and pieces[-1].lower() not in PARAMETERS:
                rest = "".join([*pieces[:place], "*", *pieces[place + 1 :]])
                return role, rest, [int(number) for number in re.findall(r"\d+", rest)]
    return None, key, []


def has_role(key: str) -> bool:
    """Say whether a name is one of an array of attention."""
    return split_name(key)[0] is not None


def of_lens(key: str) -> bool:
    """Say whether a name is one of TransformerLens'."""
    return _LENS.search(key) is not None


def before_rotation(keys: Collection[str]) -> list[str]:
    """Return the names that a rotation follows: hook_q where the file says that the model is rotary.

    Where hook_rot_q is there, it is what is read, and hook_q stands for nothing.
    """
    plain = [key for key in keys if re.search(r"hook_(q|k)$", key)]
    rotary = any(re.search(r"hook_rot_|rotary_(sin|cos|dim)|positional_embedding_type_rotary", key) for key in keys)
    return plain if rotary else []


def without_projection(rest: str) -> str:
    """Return a name without the word that says that it is a projection: `layers.0.*_proj` is of `layers.0.*`."""
    return _AFTER.sub("*", rest)
