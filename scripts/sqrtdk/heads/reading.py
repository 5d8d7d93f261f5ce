"""Arrays from .npy, .npz, .safetensors and .pt files, read in parts: nothing in a file is executed."""

import json
import math
import struct
import tempfile
import tokenize
import weakref
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from sqrtdk.heads.errors import InputError
from sqrtdk.heads.saved import tensors_of

SAFETENSORS = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"},
    **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"},
}
"""Types of the format; others, such as those of 8-bit floats, are refused by name."""
MAX_HEADER = 100_000_000
"""As the reference implementation has it."""
COPY = 2**22
ABOUT = "sqrtdk"
"""Name of what a capture says in words, as JSON: an array of text, or an entry of the metadata of .safetensors."""
_BROKEN = (
    *(OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
    *(NotImplementedError, RuntimeError, struct.error, MemoryError, OverflowError, KeyError, TypeError),
)
"""What the readers of NumPy and of zip archives raise on bytes that are not theirs."""


@dataclass(frozen=True)
class Tensor:
    """An array in a file.

    `key` is its name there, `map` opens it anew each time, `bfloat16` says that its integers are the upper halves of
    float32.
    """

    file: Path
    key: str
    shape: tuple[int, ...]
    boolean: bool
    bfloat16: bool
    map: Callable[[], np.ndarray]

    @property
    def where(self) -> str:
        """The file and the name in it, for a message."""
        return f"{self.file}: '{self.key}'" if self.key else str(self.file)

    def raw(self, index: tuple[Any, ...] = ()) -> np.ndarray:
        """Return a part as float64, or as bool where it is one, with NaN and ∞ as they are."""
        part = self.map()[index]
        if self.boolean:
            return np.array(part, bool)
        if self.bfloat16:
            part = (part.astype(np.uint32) << 16).view(np.float32)
        # A copy, so that no open map of the file is kept.
        return np.array(part, np.float64)

    def read(self, index: tuple[Any, ...] = ()) -> np.ndarray:
        """Return a part as `raw` does; InputError where a number is NaN. −∞ is let through, as masks hold it."""
        array = self.raw(index)
        if not self.boolean and np.isnan(array).any():
            raise InputError(f"{self.where} holds NaN")
        return array

    def finite(self, index: tuple[Any, ...] = ()) -> np.ndarray:
        """Return a part as float64; InputError where a number is not finite."""
        array = np.asarray(self.read(index), np.float64)
        if not np.isfinite(array).all():
            raise InputError(f"{self.where} holds infinite values")
        return array


def tensors(path: Path | str, wanted: Callable[[str], bool] = bool) -> dict[str, Tensor]:
    """Return the arrays of a file by key, those whose key is `wanted`; the one of an .npy file has the key ''.

    Raises InputError naming the file, and the key where one is to blame.
    """
    path = Path(path)
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors, ".pt": _saved, ".pth": _saved}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path}: not a .npy, .npz, .safetensors or .pt file")
    if path.is_dir():
        raise InputError(f"{path}: is a folder")
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({_words(error)})") from error
    if size == 0:
        raise InputError(f"{path}: is empty")
    try:
        found = readers[path.suffix.lower()](path, size, wanted)
    except InputError:
        raise
    except _BROKEN as error:
        raise InputError(f"{path}: not a readable {path.suffix} file ({_words(error)})") from error
    return found


def _words(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error).split("\n")[0]
    return text[:200] or type(error).__name__


def kind_of(where: str, dtype: np.dtype) -> tuple[bool, bool]:
    """Say of a type whether it is boolean and whether it is bfloat16; InputError for what is no number."""
    if dtype.hasobject:
        raise InputError(f"{where} is pickled (objects), which is never loaded")
    # NumPy writes ml_dtypes.bfloat16 as two bytes without a type.
    bfloat16 = dtype.kind == "V" and dtype.itemsize == 2 and dtype.fields is None
    if dtype.kind not in "fiub" and not bfloat16:
        raise InputError(f"{where} holds {dtype}, not real numbers")
    return dtype.kind == "b", bfloat16


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    # NumPy lets these through, and sizes that follow from them make no sense.
    if not all(type(number) is int and number >= 0 for number in shape):
        raise ValueError(f"its shape is {shape}; every entry is a non-negative int")
    return shape, fortran, dtype


def _mapped(
    path: Path, key: str, shape: tuple[int, ...], dtype: np.dtype, fortran: bool, offset: int, size: int
) -> Tensor:
    """Return an array whose bytes stand uncompressed in a file of `size` bytes."""
    where = f"{path}: '{key}'" if key else str(path)
    boolean, bfloat16 = kind_of(where, dtype)
    needed = math.prod(shape) * dtype.itemsize
    if offset + needed > size:
        raise InputError(f"{where} is cut short: {needed} bytes needed, {max(size - offset, 0)} there")
    if needed == 0:
        raise InputError(f"{where} is empty, of shape {tuple(shape)}")
    stored = np.dtype("<u2") if bfloat16 else dtype
    order: Literal["F", "C"] = "F" if fortran else "C"

    def open_map() -> np.ndarray:
        return np.memmap(path, dtype=stored, mode="r", offset=offset, shape=tuple(shape), order=order)

    return Tensor(path, key, tuple(shape), boolean, bfloat16, open_map)


def in_memory(path: Path, key: str, array: np.ndarray) -> Tensor:
    """Return an array that is in memory as one of a file."""
    boolean, bfloat16 = kind_of(f"{path}: '{key}'", array.dtype)
    bits = array.view("<u2") if bfloat16 else array
    return Tensor(path, key, array.shape, boolean, bfloat16, lambda: bits)


def words_of(path: Path) -> str | None:
    """Return the text that a capture has beside its arrays, None where there is none."""
    try:
        if path.suffix.lower() == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                return str(archive[ABOUT]) if ABOUT in archive.files and archive[ABOUT].dtype.kind == "U" else None
        if path.suffix.lower() == ".safetensors":
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                entries = json.loads(file.read(length).decode("utf-8"))
            return entries.get("__metadata__", {}).get(ABOUT)
    except _BROKEN as error:
        raise InputError(f"{path}: '{ABOUT}' is not readable ({_words(error)})") from error
    return None


def _saved(path: Path, size: int, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    return {key: in_memory(path, key, array) for key, array in tensors_of(path).items() if wanted(key)}


def _npy(path: Path, size: int, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    with path.open("rb") as file:
        shape, fortran, dtype = _header(file)
        return {"": _mapped(path, "", shape, dtype, fortran, file.tell(), size)}


def _npz(path: Path, size: int, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            key = member.filename.removesuffix(".npy")
            if not member.filename.endswith(".npy") or not wanted(key):
                continue
            try:
                found[key] = _member(path, archive, member, key, size)
            except InputError:
                raise
            except _BROKEN as error:
                raise InputError(f"{path}: '{key}' is not readable ({_words(error)})") from error
    return found


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, key: str, size: int) -> Tensor:
    with archive.open(member) as file:
        shape, fortran, dtype = _header(file)
        start = file.tell()
        boolean, bfloat16 = kind_of(f"{path}: '{key}'", dtype)
    if member.compress_type == zipfile.ZIP_STORED:
        # The local header, 30 bytes and two texts, stands before the member; its extra text may differ from the
        # directory's.
        with path.open("rb") as file:
            file.seek(member.header_offset + 26)
            name, extra = struct.unpack("<HH", file.read(4))
        offset = member.header_offset + 30 + name + extra + start
        return _mapped(path, key, shape, dtype, fortran, offset, size)
    needed = math.prod(shape) * dtype.itemsize
    if needed == 0 or needed > member.file_size - start:
        raise InputError(f"{path}: '{key}' is {'empty' if needed == 0 else 'cut short'}, of shape {tuple(shape)}")
    stored = np.dtype("<u2") if bfloat16 else dtype
    unpacked: list[IO[bytes]] = []

    def open_map() -> np.ndarray:
        # Compressed: unpacked once, onto the disk, when it is first read.
        if not unpacked:
            unpacked.append(tempfile.TemporaryFile())  # noqa: SIM115 - lives as long as the array
            weakref.finalize(open_map, unpacked[0].close)
            try:
                with zipfile.ZipFile(path) as archive, archive.open(member) as file:
                    while piece := file.read(COPY):
                        unpacked[0].write(piece)
                unpacked[0].flush()
            except _BROKEN as error:
                unpacked.pop().close()
                raise InputError(f"{path}: '{key}' is not readable ({_words(error)})") from error
        return np.memmap(
            unpacked[0], dtype=stored, mode="r", offset=start, shape=tuple(shape), order="F" if fortran else "C"
        )

    return Tensor(path, key, tuple(shape), boolean, bfloat16, open_map)


def _safetensors(path: Path, size: int, wanted: Callable[[str], bool]) -> dict[str, Tensor]:
    """Read the header: its length in 8 bytes, little-endian, then JSON of names to type, shape and place after it."""
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > min(size - 8, MAX_HEADER):
            raise InputError(f"{path}: its header is cut short")
        entries = json.loads(file.read(length).decode("utf-8"))
    if not isinstance(entries, dict):
        raise InputError(f"{path}: its header is no list of arrays")
    found = {}
    for key, entry in entries.items():
        if key == "__metadata__" or not wanted(key):
            continue
        where = f"{path}: '{key}'"
        try:
            kind, shape, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            whole = all(type(number) is int and number >= 0 for number in (*shape, first, last))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where} has no proper entry in the header") from error
        if kind not in SAFETENSORS:
            raise InputError(f"{where} holds {kind}, which is not supported; convert it to BF16 or F32")
        dtype = np.dtype(SAFETENSORS[kind])
        if not whole or last - first != math.prod(shape) * dtype.itemsize:
            raise InputError(f"{where} has shape {shape} and bytes {first} to {last}, which do not agree")
        tensor = _mapped(path, key, shape, dtype, False, 8 + length + first, size)
        found[key] = Tensor(path, key, shape, tensor.boolean, kind == "BF16", tensor.map)
    return found
