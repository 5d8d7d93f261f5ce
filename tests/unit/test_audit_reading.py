"""Files of the audit: formats, types, names, layouts, and what cannot be used, which is named and never executed."""

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path

import audit_files
import numpy as np
import pytest

from sqrtdk.heads.dumps import dump_of, read_dumps, split_name
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.reading import tensors


def read_all(path):
    return [head.blocks() for dump in read_dumps([path]) for head in dump.heads]


def heads_of(path, **options):
    (dump,) = read_dumps([path], **options)
    return {(head.layer, head.head): head.blocks() for head in dump.heads}


class TestFormats:
    @pytest.mark.parametrize("kind", ["npz", "compressed", "safetensors", "npy"])
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_every_format_gives_the_same_numbers(self, tmp_path, kind, dtype):
        q, k = (x.astype(dtype) for x in audit_files.normal())
        if kind == "npy":
            paths = [tmp_path / "q.npy", tmp_path / "k.npy"]
            for path, array in zip(paths, (q, k), strict=True):
                np.save(path, array)
        else:
            paths = [tmp_path / ("a.safetensors" if kind == "safetensors" else "a.npz")]
            write = {"npz": np.savez, "compressed": np.savez_compressed}.get(kind)
            write(paths[0], q=q, k=k) if write else audit_files.write_safetensors(paths[0], {"q": q, "k": k})
        (dump,) = read_dumps(paths)
        assert len(dump.heads) == 2
        for head in dump.heads:
            (block,) = head.blocks()
            assert block.q.dtype == np.float64
            assert np.array_equal(block.q, q[head.head].astype(float))
            assert np.array_equal(block.k, k[head.head].astype(float))

    def test_bfloat16_is_read_without_loss(self, tmp_path):
        q, k = (1e4 + x for x in audit_files.normal())
        audit_files.write_safetensors(tmp_path / "a.safetensors", {"q": q, "k": k}, bf16=("q", "k"))
        (block,) = heads_of(tmp_path / "a.safetensors")[0, 1]
        assert np.array_equal(block.q, audit_files.from_bfloat16(audit_files.bfloat16(q[1])))

    def test_bfloat16_of_numpy_extensions(self, tmp_path):
        q, k = audit_files.normal()
        bits = {name: audit_files.bfloat16(x).view("V2") for name, x in (("q", q), ("k", k))}
        np.savez(tmp_path / "a.npz", **bits)
        (block,) = heads_of(tmp_path / "a.npz")[0, 0]
        assert np.array_equal(block.q, audit_files.from_bfloat16(audit_files.bfloat16(q[0])))

    def test_fortran_order_and_big_endian(self, tmp_path):
        q, k = audit_files.normal()
        np.savez(tmp_path / "a.npz", q=np.asfortranarray(q), k=k.astype(">f4"))
        (block,) = heads_of(tmp_path / "a.npz")[0, 1]
        assert np.array_equal(block.q, q[1])
        assert np.array_equal(block.k, k[1].astype(np.float32).astype(float))

    def test_arrays_of_other_names_are_left_alone(self, tmp_path):
        q, k = audit_files.normal()
        np.savez(tmp_path / "a.npz", q=q, k=k, notes=np.array([{"any": "object"}], dtype=object))
        assert len(heads_of(tmp_path / "a.npz")) == 2


class TestNames:
    @pytest.mark.parametrize(
        ("key", "role", "numbers"),
        [
            ("q", "q", []),
            ("layers.3.self_attn.q", "q", [3]),
            ("layer3_query", "q", [3]),
            ("model/12/attn/keys", "k", [12]),
            ("k_3", "k", [3]),
            ("l3.h7.k", "k", [3, 7]),
            ("q3", "q", [3]),
            ("model.layers.2.self_attn.q_proj", "q", [2]),
            ("model.layers.2.self_attn.q_proj.weight", None, []),
            ("scores", "scores", []),
            ("attention_mask", "mask", []),
            ("embeddings", None, []),
            ("masked", None, []),
        ],
    )
    def test_roles_and_numbers(self, key, role, numbers):
        found = split_name(key)
        assert (found[0], found[2]) == (role, numbers)

    def test_layers_from_names(self, tmp_path):
        q, k = audit_files.normal()
        names = {f"layers.{layer}.attn.{role}": x + layer for layer in (2, 11) for role, x in (("q", q), ("k", k))}
        np.savez(tmp_path / "a.npz", **names)
        found = heads_of(tmp_path / "a.npz")
        assert sorted(found) == [(2, 0), (2, 1), (11, 0), (11, 1)]
        assert np.array_equal(found[11, 1][0].q, q[1] + 11)


class TestLayouts:
    @pytest.mark.parametrize("layout", ["BHSD", "BSHD", "HSD", "SD", "LHSD", "LBHSD"])
    def test_each_axis_is_what_its_letter_says(self, tmp_path, layout):
        sizes = {"L": 2, "B": 3, "H": 4, "S": 5, "D": 6}
        q = np.random.default_rng(1).normal(size=[sizes[letter] for letter in layout])
        np.savez(tmp_path / "a.npz", q=q, k=2 * q)
        found = heads_of(tmp_path / "a.npz", layout=layout)
        n_layers, n_heads = (sizes[letter] if letter in layout else 1 for letter in "LH")
        assert len(found) == n_layers * n_heads
        blocks = found[n_layers - 1, n_heads - 1]
        assert len(blocks) == (3 if "B" in layout else 1)
        index = {"L": n_layers - 1, "B": len(blocks) - 1, "H": n_heads - 1}
        where = tuple(index.get(letter, slice(None)) for letter in layout)
        assert np.array_equal(blocks[-1].q, q[where])
        assert np.array_equal(blocks[-1].k, 2 * q[where])

    def test_grouped_queries_share_keys_in_order(self):
        q, _ = audit_files.normal(heads=6)
        _, k = audit_files.normal(seed=2, heads=2)
        dump = dump_of({"q": q, "k": k})
        for head in dump.heads:
            assert np.array_equal(head.blocks()[0].k, k[head.head // 3])

    def test_cross_attention_has_other_lengths(self):
        q, k = audit_files.normal(n=10, m=25)
        (block,) = dump_of({"q": q, "k": k}).heads[0].blocks()
        assert block.shape == (10, 25)
        assert not block.shared

    @pytest.mark.parametrize("shape", [(40,), (40, 40), (1, 40), (2, 40, 40), (1, 1, 40, 40), (1, 2, 40, 40)])
    def test_shapes_of_masks(self, shape):
        q, k = audit_files.normal()
        mask = np.random.default_rng(3).random(shape) < 0.8
        blocks = [head.blocks()[0] for head in dump_of({"q": q, "k": k, "mask": mask}).heads]
        for head, block in enumerate(blocks):
            allowed = np.broadcast_to(block.allowed, (40, 40))
            lead = mask.reshape((-1, *shape[-2:])) if len(shape) > 2 else None
            wanted = mask if lead is None else lead[head % len(lead)]
            wanted = np.broadcast_to(wanted, (40, 40))
            # A token that none may see is padding, and asks nothing either.
            padding = ~wanted.any(axis=0)
            assert np.array_equal(allowed, wanted & ~padding[:, None])

    @pytest.mark.parametrize("masked", [False, True])
    def test_a_mask_in_the_scores_is_told_where_there_is_one(self, masked):
        scores = np.random.default_rng(1).normal(size=(2, 9, 9))
        if masked:
            scores[1] -= 1e4 * (1 - np.tri(9))
        dump = dump_of({"scores": scores})
        for head in dump.heads:
            head.blocks()
        assert any("mask read off the scores" in words for words in dump.assumed) == masked

    def test_what_was_assumed_is_told(self, tmp_path):
        q, k = audit_files.normal()
        assert any("(head, token, d_k)" in words for words in dump_of({"q": q, "k": k}).assumed)
        assert any("no mask" in words for words in dump_of({"q": q, "k": k}).assumed)


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def whole_npz():
    content = io.BytesIO()
    q, k = audit_files.normal()
    np.savez(content, q=q, k=k)
    return content.getvalue()


def safetensors(header, body=b"\0" * 64):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


ENTRY = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}
BROKEN = {
    "empty.npz": b"",
    "text.npz": b"text",
    "short.npz": b"PK\x03\x04 cut short",
    "half.npz": whole_npz()[: len(whole_npz()) // 2],
    "empty.npy": b"",
    "text.npy": b"no array at all",
    "short.npy": b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9, 9), }" + b" " * 60,
    "evil.npy": b"\x93NUMPY\x01\x00\x46\x00"
    + b"{'descr': __import__('os').system('x'), 'fortran_order': 0}".ljust(69)
    + b"\n",
    "pickled.npy": pickle.dumps({"q": 1}),
    "empty.safetensors": b"",
    "short.safetensors": b"\x01\x02",
    "long.safetensors": struct.pack("<Q", 2**60) + b"{}",
    "text.safetensors": safetensors(b"not json"),
    "list.safetensors": safetensors([1, 2]),
    "shape.safetensors": safetensors({"q": ENTRY | {"shape": [4, 5]}, "k": ENTRY}),
    "negative.safetensors": safetensors({"q": ENTRY | {"shape": [-4, -4]}, "k": ENTRY}),
    "beyond.safetensors": safetensors({"q": ENTRY | {"data_offsets": [64, 128]}, "k": ENTRY}),
    "entry.safetensors": safetensors({"q": 3, "k": ENTRY}),
    "float8.safetensors": safetensors({"q": ENTRY | {"dtype": "F8_E4M3"}, "k": ENTRY}),
    "model.pt": b"PK",
}


class TestRefusals:
    @pytest.mark.parametrize("name", BROKEN)
    def test_broken_files_are_named(self, tmp_path, name):
        path = tmp_path / name
        path.write_bytes(BROKEN[name])
        with pytest.raises(InputError) as error:
            read_dumps([path])
        assert name in str(error.value)
        assert "\n" not in str(error.value)
        if name in ("shape.safetensors", "beyond.safetensors", "float8.safetensors", "entry.safetensors"):
            assert "'q'" in str(error.value)

    @pytest.mark.parametrize("shape", ["(-4, -4)", "(True, 4)", "(-1,)"])
    @pytest.mark.parametrize("kind", ["npz", "npy"])
    def test_hostile_shapes_are_refused(self, tmp_path, kind, shape):
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
        content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(128)
        path = tmp_path / f"q.{kind}"
        path.write_bytes(content)
        if kind == "npz":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("q.npy", content)
        with pytest.raises(InputError, match="every entry is a non-negative int"):
            read_dumps([path])

    @pytest.mark.parametrize("kind", ["npz", "npy"])
    def test_nothing_is_unpickled(self, tmp_path, kind):
        bomb, path = np.array([Bomb(tmp_path / "proof")], dtype=object), tmp_path / f"q.{kind}"
        np.save(path, bomb, allow_pickle=True) if kind == "npy" else np.savez(path, q=bomb, k=bomb)
        with pytest.raises(InputError, match=r"is pickled \(objects\), which is never loaded"):
            read_dumps([path])
        assert not (tmp_path / "proof").exists()

    @pytest.mark.parametrize(
        ("arrays", "words"),
        [
            ({"q": np.ones((4, 2))}, "'q' has no keys beside it"),
            ({"k": np.ones((4, 2))}, "'k' has no queries beside it"),
            ({"x": np.ones((4, 2))}, "no array is named"),
            ({"mask": np.ones((4, 4))}, "a mask and no queries"),
            ({"q": np.ones((4, 2)), "query": np.ones((4, 2)), "k": np.ones((4, 2))}, "both q"),
            ({"q": np.ones(4), "k": np.ones(4)}, "shape (4,)"),
            ({"q": np.ones((4, 2)), "k": np.ones((4, 3))}, "d_k differs"),
            ({"q": np.ones((3, 4, 2)), "k": np.ones((2, 4, 2))}, "cannot share"),
            ({"q": np.ones((0, 2)), "k": np.ones((4, 2))}, "empty"),
            ({"q": np.ones((4, 2)), "k": np.ones((1, 2))}, "one key"),
            ({"q": np.ones((4, 2)), "k": np.ones((4, 2)), "scores": np.ones((4, 6))}, "as q and k say"),
            ({"q": np.ones((4, 2)), "k": np.ones((4, 2)), "mask": np.ones((3, 3))}, "no mask for"),
            ({"q": np.ones((4, 2), complex), "k": np.ones((4, 2))}, "not real numbers"),
            ({"q": np.array(["a"]), "k": np.ones((4, 2))}, "not real numbers"),
            ({"q": np.ones((4, 2), bool), "k": np.ones((4, 2), bool)}, "truth values"),
        ],
    )
    def test_arrays_that_do_not_fit_are_named(self, tmp_path, arrays, words):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays)
        with pytest.raises(InputError) as error:
            read_all(path)
        assert words in str(error.value)
        assert "mine.npz" in str(error.value)

    def test_a_corrupted_member_is_named(self, tmp_path):
        content = io.BytesIO()
        q, k = audit_files.normal()
        np.savez_compressed(content, q=q, k=k)
        data = bytearray(content.getvalue())
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            place = archive.getinfo("k.npy").header_offset
        data[place + 4000 : place + 4200] = b"\xff" * 200
        (tmp_path / "a.npz").write_bytes(data)
        (dump,) = read_dumps([tmp_path / "a.npz"])
        with pytest.raises(InputError, match=r"a\.npz: 'k' is not readable"):
            dump.heads[0].blocks()

    def test_folders_and_missing_files(self, tmp_path):
        (tmp_path / "a.npz").mkdir()
        for name in ("a.npz", "nowhere.npz"):
            with pytest.raises(InputError, match=name):
                tensors(tmp_path / name)

    def test_layouts_that_do_not_exist(self, tmp_path):
        with pytest.raises(InputError, match="--layout HDS"):
            read_dumps([Path("any.npz")], layout="HDS")
