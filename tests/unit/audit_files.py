"""Files of queries and keys for the tests of the audit, written without the code under test."""

import json
import struct

import numpy as np

TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bool": "BOOL", "int64": "I64"}


def bfloat16(x: np.ndarray) -> np.ndarray:
    """Round to bfloat16 (to nearest even) and return its bits."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def write_safetensors(path, arrays: dict, bf16=()) -> None:
    """Write the format as it is documented: length of the header, header, bytes."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for key, array in arrays.items():
        array = np.ascontiguousarray(bfloat16(array) if key in bf16 else array)
        kind = "BF16" if key in bf16 else TYPES[str(array.dtype)]
        header[key] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + array.nbytes],
        }
        body += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def normal(seed=1, *, heads=2, n=40, d=16, m=None):
    """Return q (heads, n, d) and k (heads, m or n, d)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(heads, n, d)), rng.normal(size=(heads, m or n, d))
