"""Heads from files: which array is which, which axis is which, and the heads one after the other."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sqrtdk.heads import masks
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.reading import Tensor, kind_of, tensors
from sqrtdk.heads.tally import Block

ROLES = {
    "q": ("q", "query", "queries"),
    "k": ("k", "key", "keys"),
    "scores": ("scores", "score", "logits"),
    "mask": ("mask", "attentionmask", "attnmask"),
}
PARAMETERS = ("weight", "bias")
LAYOUTS = ("BHSD", "BSHD", "HSD", "SD", "LHSD", "LBHSD")
"""Axes in order: layer, batch, head, sequence, d_k."""
AUTO = {2: "SD", 3: "HSD", 4: "BHSD", 5: "LBHSD"}
ABSURD = 1e30
"""Larger numbers are no activations, and their powers would overflow."""
LARGEST = 2**27
"""Scores of one head and sequence that are still read: more would not fit into memory where they are given."""


@dataclass(frozen=True)
class Head:
    """One head of one dump, read when `blocks` is called."""

    dump: str
    order: int
    layer: int
    head: int
    group: "Group"
    place: tuple[int, int]

    def blocks(self) -> list[Block]:
        return self.group.blocks(*self.place)


@dataclass(frozen=True)
class Group:
    """Arrays that belong together: q and k, scores, or all three, with the axes of each and the mask.

    told: what reading them has shown, which is known only once they are read.
    """

    arrays: dict[str, Tensor]
    layout: str
    mask: str | Tensor
    n_heads: int
    told: set[str] = field(default_factory=set, compare=False)

    def _size(self, role: str, letter: str) -> int:
        axes = self.axes(role)
        return self.arrays[role].shape[axes.index(letter)] if letter in axes else 1

    def axes(self, role: str) -> str:
        # Scores have a query and a key axis, and attention puts heads before them.
        return self.layout if role != "scores" else "".join(a for a in "LBH" if a in self.layout) + "SD"

    def _read(self, role: str, layer: int, batch: int, head: int) -> np.ndarray:
        index = {"L": layer, "B": batch, "H": head}
        tensor = self.arrays[role]
        where = tuple(index.get(letter, slice(None)) for letter in self.axes(role))
        if role == "scores":
            return np.asarray(tensor.read(where), np.float64)
        array = tensor.finite(where)
        if np.abs(array).max() > ABSURD:
            raise InputError(f"{tensor.where} holds values beyond {ABSURD:g}, which no activation is")
        return array

    def blocks(self, layer: int, head: int) -> list[Block]:
        first = "q" if "q" in self.arrays else "scores"
        found = []
        for batch in range(self._size(first, "B")):
            q = k = scores = None
            if "q" in self.arrays:
                q = self._read("q", layer, batch, head)
                k = self._read("k", layer, batch, head // (self.n_heads // self._size("k", "H")))
            if "scores" in self.arrays:
                scores = self._read("scores", layer, batch, head)
            n, m = scores.shape if q is None else (len(q), len(k))
            if n * m > LARGEST and scores is not None:
                raise InputError(
                    f"{self.arrays['scores'].where} has {n} × {m} scores for one head, more than {LARGEST}"
                )
            allowed = self._allowed(batch, head, n, m, scores)
            if scores is not None:
                scores = self._without_mask(scores, allowed)
            found.append(Block(q, k, scores, allowed, shared=n == m))
        return found

    def _allowed(self, batch, head, n, m, scores) -> np.ndarray | None:
        if isinstance(self.mask, Tensor):
            size = self._size("q" if "q" in self.arrays else "scores", "B")
            allowed = masks.part(self.mask, (batch, size), (head, self.n_heads), n, m)
        elif self.mask == "causal":
            allowed = masks.causal(n, m)
        else:
            allowed = masks.from_scores(scores) if scores is not None else None
            if allowed is not None:
                self.told.add("mask read off the scores (large negative ones)")
        return None if allowed is not None and allowed.all() else allowed

    def _without_mask(self, scores, allowed) -> np.ndarray:
        used = scores if allowed is None else scores[np.broadcast_to(allowed, scores.shape)]
        if not (np.abs(used) <= ABSURD).all():
            words = f"holds infinite values, or some beyond {ABSURD:g}, where the mask allows attention"
            raise InputError(f"{self.arrays['scores'].where} {words}")
        return scores if allowed is None else np.where(allowed, scores, 0.0)


def split_name(key: str) -> tuple[str | None, str, list[int]]:
    """Return the role that a name says, the name without it, and the numbers in the name.

    `layers.3.self_attn.q`, `layer3_query` and `q3` are queries of layer 3. Weights and biases have no role.
    """
    text = key.replace("attention_mask", "attentionmask").replace("attn_mask", "attnmask")
    pieces = re.split(r"([._/:\- ]+|(?<=[A-Za-z])(?=[0-9]))", text)
    for place in range(len(pieces) - 1, -1, -1):
        for role, names in ROLES.items():
            if pieces[place].lower() in names and pieces[-1].lower() not in PARAMETERS:
                rest = "".join([*pieces[:place], "*", *pieces[place + 1 :]])
                return role, rest, [int(number) for number in re.findall(r"\d+", rest)]
    return None, key, []


def has_role(key: str) -> bool:
    return split_name(key)[0] is not None


@dataclass(frozen=True)
class Dump:
    """The heads of one file, or of the .npy files that belong together, and what was assumed before they are read."""

    name: str
    heads: list[Head]
    assumed_before: tuple[str, ...]

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was assumed so far, with what reading the heads has shown."""
        told = [words for head in self.heads for words in sorted(head.group.told)]
        return tuple(dict.fromkeys((*self.assumed_before, *told)))


def read_dumps(paths: list[Path], layout: str = "auto", mask: str = "auto") -> list[Dump]:
    """Return the dumps of files, in order. layout: one of LAYOUTS or auto. mask: auto, causal or a file.

    Raises InputError where no file can be used as it is.
    """
    if layout != "auto" and layout not in LAYOUTS:
        raise InputError(f"--layout {layout}: not one of auto, {', '.join(LAYOUTS)}")
    given = mask if mask in masks.CHOICES else masks.read(Path(mask))
    dumps, loose = [], {}
    for path in map(Path, paths):
        if path.suffix.lower() == ".npy":
            (tensor,) = tensors(path, lambda key: True).values()
            role, rest, numbers = split_name(path.stem)
            name = str(path.with_name(rest if role else path.name))
            if name not in loose:
                loose[name] = {}
                dumps.append((name, loose[name]))
            _put(loose[name], role or "scores", rest, tensor, numbers)
            continue
        groups = {}
        for key, tensor in tensors(path, has_role).items():
            role, rest, numbers = split_name(key)
            _put(groups, role, rest, tensor, numbers)
        if not groups:
            raise InputError(f"{path}: no array is named q and k, query and key, or scores (weights are no queries)")
        dumps.append((str(path), groups))
    return [_dump(name, order, groups, layout, given) for order, (name, groups) in enumerate(dumps)]


def dump_of(
    arrays: dict[str, np.ndarray], layout: str = "auto", mask: str = "auto", name: str = "arrays", order: int = 0
) -> Dump:
    """Return a dump of arrays in memory, named as in a file: q and k, scores, mask; InputError as for a file."""
    groups = {}
    for key, array in arrays.items():
        role, rest, numbers = split_name(key)
        if role is None:
            raise InputError(f"{name}: '{key}' is named neither q, k, scores nor mask")
        array = np.asarray(array)
        boolean, _ = kind_of(f"{name}: '{key}'", array.dtype)
        _put(groups, role, rest, Tensor(Path(name), key, array.shape, boolean, False, lambda a=array: a), numbers)
    return _dump(name, order, groups, layout, mask)


def _put(groups: dict, role: str, rest: str, tensor: Tensor, numbers: list[int]) -> None:
    arrays = groups.setdefault(rest, ({}, numbers))[0]
    if role in arrays:
        raise InputError(f"{tensor.where} and {arrays[role].where} are both {role}")
    arrays[role] = tensor


def _dump(name: str, order: int, groups: dict, layout: str, given) -> Dump:
    assumed, heads = [], []
    whole = [arrays["mask"] for arrays, _ in groups.values() if set(arrays) == {"mask"}]
    groups = {rest: entry for rest, entry in groups.items() if set(entry[0]) != {"mask"}}
    if not groups:
        raise InputError(f"{name}: holds a mask and no queries, keys or scores")
    taken: dict = {}
    for position, (arrays, numbers) in enumerate(groups.values()):
        arrays = dict(arrays)
        own = arrays.pop("mask", whole[0] if len(whole) == 1 else None)
        mask = own if given == "auto" and own is not None else given
        _check_pair(name, arrays)
        first = arrays.get("q") or arrays["scores"]
        if any(tensor.boolean for tensor in arrays.values()):
            raise InputError(f"{first.where} holds truth values, not real numbers")
        axes = layout
        if layout == "auto":
            axes = AUTO.get(len(first.shape), "")
            if axes == "BHSD" and not numbers:
                axes = "LHSD"
            if len(first.shape) > 2:
                assumed.append(f"axes read as {_spell(axes)} (--layout changes that)")
        group = Group(arrays, axes, mask, 0)
        _check_shapes(group)
        n_heads = group._size("q" if "q" in arrays else "scores", "H")
        group = Group(arrays, axes, mask, n_heads)
        if layout == "auto" and "q" in arrays and n_heads > group._size("q", "S"):
            assumed.append(f"{n_heads} heads of {group._size('q', 'S')} tokens; if it is the other way round, say so")
        for inner in range(group._size("q" if "q" in arrays else "scores", "L")):
            layer = inner if "L" in axes else numbers[0] if numbers else position
            for head in range(n_heads):
                label = numbers[1] if len(numbers) > 1 and n_heads == 1 else head
                if (layer, label) in taken:
                    raise InputError(f"{first.where}: layer {layer}, head {label} was already in {taken[layer, label]}")
                taken[layer, label] = first.where
                heads.append(Head(name, order, layer, label, group, (inner, head)))
        assumed += _about_mask(mask, own is not None, "scores" in arrays)
    return Dump(name, heads, tuple(dict.fromkeys(assumed)))


def _about_mask(mask, own: bool, scores: bool) -> Iterator[str]:
    if isinstance(mask, Tensor):
        yield f"mask from {mask.where}: true or 1 allows, large negative numbers forbid"
    elif mask == "auto" and not scores:
        yield "no mask: every query sees every key"


def _check_pair(name: str, arrays: dict) -> None:
    for role, other in (("q", "k"), ("k", "q")):
        if role in arrays and other not in arrays:
            raise InputError(f"{arrays[role].where} has no {'keys' if other == 'k' else 'queries'} beside it")
    if not arrays:
        raise InputError(f"{name}: holds neither queries and keys nor scores")


def _spell(axes: str) -> str:
    words = {"L": "layer", "B": "batch", "H": "head", "S": "token", "D": "d_k"}
    return "(" + ", ".join(words[letter] for letter in axes) + ")"


def _check_shapes(group: Group) -> None:
    arrays = group.arrays
    for role, tensor in arrays.items():
        if len(tensor.shape) != len(group.axes(role)):
            wanted = _spell(group.layout) if group.layout else "2 to 5 axes"
            raise InputError(f"{tensor.where} has shape {tensor.shape}, not {wanted}")
        if 0 in tensor.shape:
            raise InputError(f"{tensor.where} has shape {tensor.shape}, without a number")
    size = group._size
    if "q" in arrays:
        pair = f"{arrays['q'].where} has shape {arrays['q'].shape} and '{arrays['k'].key}' has {arrays['k'].shape}"
        for letter in "LBD":
            if size("q", letter) != size("k", letter):
                raise InputError(f"{pair}: {_spell(letter)[1:-1]} differs")
        if size("q", "H") % size("k", "H"):
            raise InputError(f"{pair}: {size('q', 'H')} query heads cannot share {size('k', 'H')} key heads evenly")
    first = "q" if "q" in arrays else "scores"
    keys = size("k", "S") if "k" in arrays else size("scores", "D")
    if keys < 2:
        raise InputError(f"{arrays[first].where} has shape {arrays[first].shape}: attention over one key is no choice")
    if "scores" in arrays and "q" in arrays:
        wanted = tuple(size("q", letter) for letter in "LBH" if letter in group.layout) + (size("q", "S"), keys)
        if arrays["scores"].shape != wanted:
            raise InputError(
                f"{arrays['scores'].where} has shape {arrays['scores'].shape}, not {wanted} as q and k say"
            )
