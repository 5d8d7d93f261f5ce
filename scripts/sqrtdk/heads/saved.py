"""Tensors of a .pt or .pth file, read by PyTorch where it is installed, and without running anything in the file."""

from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads.errors import InputError


def tensors_of(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a file by name, those in dictionaries and lists too; bfloat16 as float32.

    Raises InputError where PyTorch is missing, or the file holds more than tensors, numbers and text.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(
            f"{path}: PyTorch reads this, and is not installed; save it as .safetensors or .npz"
        ) from error
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # What torch.load raises is not one family, and pickle's own may be anything.
        words = str(error).split("\n")[0][:200]
        raise InputError(f"{path}: holds more than tensors, or is no file of PyTorch ({words})") from error
    found: dict[str, np.ndarray] = {}

    def gather(name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach()
            array = (value.float() if value.dtype == torch.bfloat16 else value).cpu().numpy()
            found[name or "scores"] = array
        elif isinstance(value, dict | list | tuple):
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                gather(f"{name}.{key}" if name else str(key), inner)
        elif isinstance(value, int | float):
            found[name] = np.asarray(value)

    gather("", content)
    return found
