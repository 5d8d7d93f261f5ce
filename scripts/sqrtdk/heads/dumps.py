"""Heads from files: which array is which, which axis is which, and the heads one after the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads import masks
from sqrtdk.heads.blocks import Arrays, block_of
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.given import Given, about_of, given_of
from sqrtdk.heads.names import BESIDE, before_rotation, has_role, of_lens, split_name, without_projection
from sqrtdk.heads.reading import ABOUT, Tensor, in_memory, tensors, words_of
from sqrtdk.heads.tally import Block

LAYOUTS = ("BHSD", "BSHD", "SBHD", "HSD", "SHD", "SD", "LHSD", "LBHSD", "LBSHD")
"""Axes in order: layer, batch, head, sequence, d_k."""
AUTO = {2: "SD", 3: "HSD", 4: "BHSD", 5: "LBHSD"}
LARGEST = 2**27
"""Scores of one head and sequence that are still read: more would not fit into memory where they are given."""
MOST = 10**8
"""Scores of one head and sequence that are computed: of more, evenly spaced queries stand for all."""


@dataclass(frozen=True)
class Head:
    """One head of one dump, read when `blocks` is called. module: its path, where the file has one."""

    dump: str
    order: int
    layer: int
    head: int
    group: "Group"
    place: tuple[int, int]
    module: str = ""

    @property
    def given(self) -> Given:
        """What the file says beside the arrays."""
        return self.group.given

    @property
    def factor(self) -> float | None:
        """What q·k of the blocks is multiplied by, as the file says."""
        return self.given.factor(self.place[1])

    def blocks(self) -> list[Block]:
        """Return the sequences of the head; InputError for what cannot be used."""
        return self.group.blocks(*self.place)


@dataclass(frozen=True)
class Group:
    """Arrays that belong together: q and k, scores, or all three, with the axes of each, the mask and what is beside.

    told: what reading them has shown, which is known only once they are read.
    """

    arrays: dict[str, Tensor]
    layout: str
    mask: str | Tensor
    n_heads: int
    given: Given = Given()
    told: set[str] = field(default_factory=set, compare=False)

    def _size(self, role: str, letter: str) -> int:
        axes = self.axes(role)
        return self.arrays[role].shape[axes.index(letter)] if letter in axes else 1

    def axes(self, role: str) -> str:
        """Return the axes of an array, a letter each."""
        # Scores have a query and a key axis, and attention puts heads before them.
        return self.layout if role != "scores" else "".join(a for a in "LBH" if a in self.layout) + "SD"

    def _read(self, role: str, layer: int, batch: int, head: int) -> np.ndarray:
        index = {"L": layer, "B": batch, "H": head}
        return self.arrays[role].raw(tuple(index.get(letter, slice(None)) for letter in self.axes(role)))

    @property
    def key_heads(self) -> int | None:
        """How many heads k has, None without k."""
        return self._size("k", "H") if "k" in self.arrays else None

    def key_head(self, head: int) -> int:
        """Return the head of k that a head of q shares: neighbours share one."""
        return head // (self.n_heads // self._size("k", "H"))

    def blocks(self, layer: int, head: int, key_head: int | None = None, transposed: bool = False) -> list[Block]:
        """Return the sequences of a head. key_head: the head of k in place of the one it shares by its place.

        transposed: whether the scores are taken as (key, query). Raises InputError for what cannot be used.
        """
        first = "q" if "q" in self.arrays else "scores"
        found = [self._block(layer, batch, head, key_head, transposed) for batch in range(self._size(first, "B"))]
        left_out, tokens = sum(block.left_out for block in found), sum(block.shape[0] for block in found)
        if left_out:
            self.told.add(f"{left_out} of {tokens} tokens are padding, masked for all or all zero, and left out")
        return found

    def _block(self, layer: int, batch: int, head: int, key_head: int | None, transposed: bool) -> Block:
        given = self.given
        found = Arrays(softcap=given.softcap, sink=given.sink(head), positions=given.positions)
        found.where = {role: tensor.where for role, tensor in self.arrays.items()}
        if "q" in self.arrays:
            # As they were before any scale, which is then one number.
            key_head = self.key_head(head) if key_head is None else key_head
            found.q = self._read("q", layer, batch, head) / given.gains[0]
            found.k = self._read("k", layer, batch, key_head) / given.gains[1]
        if "scores" in self.arrays:
            found.scores = self._read("scores", layer, batch, head)
            found.scores = found.scores.T if transposed else found.scores
        n, m = found.shape
        if n * m > LARGEST and found.scores is not None:
            raise InputError(f"{self.arrays['scores'].where} has {n} × {m} scores for one head, more than {LARGEST}")
        rows = slice(None, None, -(-n * m // MOST) if found.scores is None else 1)
        if isinstance(self.mask, Tensor):
            size = self._size("q" if "q" in self.arrays else "scores", "B")
            mask = masks.part(self.mask, (batch, size), (head, self.n_heads), n, m)
            found.mask = mask[rows] if len(mask) > 1 else mask
        given = replace(given, causal=True) if self.mask == "causal" else given
        found.allowed = given.allowed(n, m, rows)
        if rows.step > 1:
            self.told.add(f"every query of {n} could not be looked at; each {rows.step}th stands for all")
            places = np.arange(n) + max(m - n, 0) if given.positions is None else given.positions
            found.q, found.positions = found.pair[0][rows], places[rows]
        return block_of(found, self.told)


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


Groups = dict[str, tuple[dict[str, Tensor], list[int]]]
"""Arrays that belong together by their role, and the numbers in their names, by the rest of the names."""


def read_dumps(paths: list[Path], layout: str = "auto", mask: str = "auto") -> list[Dump]:
    """Return the dumps of files, in order. layout: one of LAYOUTS or auto. mask: auto, causal or a file.

    Raises InputError where no file can be used as it is.
    """
    layout = _layout(layout)
    given = _mask(mask)
    dumps: list[tuple[str, Groups, dict[str, Any]]] = []
    loose: dict[str, Groups] = {}
    for path in map(Path, paths):
        if path.suffix.lower() == ".npy":
            (tensor,) = tensors(path, lambda key: True).values()
            role, rest, numbers = split_name(path.stem)
            name = str(path.with_name(rest if role else path.name))
            if name not in loose:
                loose[name] = {}
                dumps.append((name, loose[name], {}))
            _put(loose[name], role or "scores", rest, tensor, numbers)
            continue
        groups = _groups(tensors(path, has_role))
        if not groups:
            raise InputError(f"{path}: no array is named q and k, query and key, or scores (weights are no queries)")
        dumps.append((str(path), groups, about_of(path, words_of(path))))
    return [_dump(name, order, groups, layout, given, about) for order, (name, groups, about) in enumerate(dumps)]


def dump_of(
    arrays: Mapping[str, np.ndarray], layout: str = "auto", mask: str = "auto", name: str = "arrays", order: int = 0
) -> Dump:
    """Return a dump of arrays in memory, named as in a file: q and k, scores, mask; InputError as for a file."""
    path, found = Path(name), {}
    for key, array in arrays.items():
        if key == ABOUT:
            continue
        if not has_role(key):
            raise InputError(f"{name}: '{key}' is named neither q, k, scores nor mask")
        found[key] = in_memory(path, key, np.asarray(array))
    about = about_of(path, str(arrays[ABOUT]) if ABOUT in arrays else None)
    return _dump(name, order, _groups(found), _layout(layout), _mask(mask), about)


def _mask(mask: str) -> str | Tensor:
    return mask if mask in masks.CHOICES else masks.read(Path(mask))


def _layout(layout: str, source: str = "--layout") -> str:
    if layout.lower() == "auto":
        return "auto"
    if layout.upper() not in LAYOUTS:
        raise InputError(f"{source} {layout}: not one of auto, {', '.join(LAYOUTS)}")
    return layout.upper()


def _groups(found: Mapping[str, Tensor]) -> Groups:
    """Return arrays that belong together, by the rest of their names, with the numbers in it."""
    groups: Groups = {}
    rotated_later = before_rotation(found)
    for key, tensor in found.items():
        role, rest, numbers = split_name(key)
        if key in rotated_later:
            if key.replace("hook_", "hook_rot_") in found:
                continue
            raise InputError(f"{tensor.where} is taken before rotary positions; save hook_rot_q and hook_rot_k")
        if role is not None:
            _put(groups, role, rest, tensor, numbers)
    for rest in [rest for rest, (arrays, _) in groups.items() if {"q", "k"} & set(arrays)]:
        # Scores of a layer stand beside its q_proj and k_proj.
        other = groups.get(without_projection(rest), ({}, []))[0] if without_projection(rest) != rest else {}
        if other and not {"q", "k"} & set(other):
            for role in list(other):
                _put(groups, role, rest, other.pop(role), [])
    # A scale beside no queries is a parameter of something else, such as of a normalisation.
    return {
        rest: (arrays, numbers)
        for rest, (arrays, numbers) in groups.items()
        if {"q", "k", "scores", "mask"} & set(arrays) or (rest == "*" and arrays)
    }


def _put(groups: Groups, role: str, rest: str, tensor: Tensor, numbers: list[int]) -> None:
    arrays = groups.setdefault(rest, ({}, numbers))[0]
    if role in arrays:
        raise InputError(f"{tensor.where} and {arrays[role].where} are both {role}")
    arrays[role] = tensor


def _dump(name: str, order: int, groups: Groups, layout: str, mask: str | Tensor, about: dict[str, Any]) -> Dump:
    assumed, heads = [str(words) for words in about.get("notes", [])], []
    for_all = _for_all(groups)
    groups = {rest: entry for rest, entry in groups.items() if {"q", "k", "scores"} & set(entry[0])}
    if not groups:
        raise InputError(f"{name}: holds a mask and no queries, keys or scores")
    layout = _layout(str(about.get("layout", layout)), f"{name}: layout") if layout == "auto" else layout
    layers = [numbers[0] if numbers else place for place, (_, numbers) in enumerate(groups.values())]
    labels = [(layer, numbers[1:2]) for layer, (_, numbers) in zip(layers, groups.values(), strict=True)]
    # Where numbers of layers are not enough, as in an encoder with a decoder, heads go by their module's path.
    by_path = len(set(map(str, labels))) < len(labels)
    for (rest, (arrays, numbers)), layer in zip(groups.items(), layers, strict=True):
        arrays = for_all | arrays
        own = arrays.pop("mask", None)
        beside = {role: arrays.pop(role) for role in BESIDE if role in arrays}
        _check_pair(name, arrays)
        first = arrays.get("q") or arrays["scores"]
        if any(tensor.boolean for tensor in arrays.values()):
            raise InputError(f"{first.where} holds truth values, not real numbers")
        axes, words = _axes(first, layout, bool(numbers))
        assumed += words
        group = Group(arrays, axes, own if mask == "auto" and own is not None else mask, 0)
        _check_shapes(group)
        size = group._size
        main = "q" if "q" in arrays else "scores"
        n_heads = size(main, "H")
        path = rest.rstrip("*").rstrip("._/:- ")
        said = about.get("calls", {}).get(path, {})
        group = replace(group, n_heads=n_heads, given=given_of(beside, said, n_heads, size(main, "S")))
        if layout == "auto" and "q" in arrays and n_heads > size("q", "S"):
            assumed.append(f"{n_heads} heads of {size('q', 'S')} tokens; if it is the other way round, say so")
        for inner in range(size(main, "L")):
            for head in range(n_heads):
                label = numbers[1] if len(numbers) > 1 and n_heads == 1 and not by_path else head
                label = group.given.heads[head] if group.given.heads else label
                module = path if by_path or said else ""
                heads.append(Head(name, order, inner if "L" in axes else layer, label, group, (inner, head), module))
        assumed += _about_call(group, own is not None)
    return Dump(name, heads, tuple(dict.fromkeys(assumed)))


def _for_all(groups: Groups) -> dict[str, Tensor]:
    """Return what is said once for all layers: the one mask of a file, and what stands beside nothing."""
    masked = [arrays["mask"] for arrays, _ in groups.values() if set(arrays) == {"mask"}]
    found = {"mask": masked[0]} if len(masked) == 1 else {}
    bare = groups.get("*", ({}, []))[0]
    return found | {role: tensor for role, tensor in bare.items() if role in BESIDE}


def _axes(first: Tensor, layout: str, numbered: bool) -> tuple[str, list[str]]:
    """Return the axes of an array, and what was assumed of them."""
    if layout != "auto":
        return layout, []
    axes = AUTO.get(len(first.shape), "")
    if of_lens(first.key) and "H" in axes and "scores" not in first.key:
        axes = axes.replace("HS", "SH")
    if len(first.shape) < 3:
        return axes, []
    hint = "--layout changes that"
    if axes == "BHSD" and not numbered:
        hint = "--layout LHSD if the first axis is that of layers"
    return axes, [f"axes read as {_spell(axes)} ({hint})"]


def _about_call(group: Group, own: bool) -> Iterator[str]:
    given = group.given
    if isinstance(group.mask, Tensor):
        yield f"mask from {group.mask.where}: true or 1 allows, large negative numbers forbid"
    elif group.mask == "auto" and "scores" not in group.arrays and given.scale is None and not given.causal:
        yield "no mask: every query sees every key"
    if given.overflow:
        yield f"{given.overflow} numbers of {group.arrays['q'].where} are beyond float16, and were kept as float32"


def _check_pair(name: str, arrays: dict[str, Tensor]) -> None:
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
        right = tuple(size("q", letter) for letter in "LBH" if letter in group.layout) + (size("q", "S"), keys)
        shape = arrays["scores"].shape
        # A column more is that of a learned sink.
        if shape not in (right, (*right[:-1], keys + 1)):
            hint = ""
            if "H" in group.layout and shape == (*right[:-3], right[-2], size("q", "H"), size("k", "H")):
                hint = ": are tokens and heads exchanged? (--layout)"
            raise InputError(f"{arrays['scores'].where} has shape {shape}, not {right} as q and k say{hint}")
