"""MGM as the package microformer-mgm carries it (HUST-NingKang-Lab, MIT licence): a GPT-2 of microbial communities.

A community is a sentence: its genera, the most abundant one first.
"""

import importlib.util
import json
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

LENGTH = 192


def whole() -> GPT2LMHeadModel:
    """Return the model with the package's weights."""
    package = importlib.util.find_spec("mgm")
    if package is None or package.origin is None:
        raise SystemExit("The weights are those of a package: pip install --no-deps microformer-mgm==0.5.8")
    folder = Path(package.origin).parent / "resources" / "general_model"
    model = GPT2LMHeadModel(GPT2Config(**json.loads((folder / "config.json").read_text())))
    weights = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    missing, unknown = model.load_state_dict(weights, strict=False)
    if set(missing) - {"lm_head.weight"} or [
        name for name in unknown if not name.endswith((".attn.bias", "masked_bias"))
    ]:
        raise SystemExit(f"weights missing: {missing}; unknown: {unknown}")
    return model.eval()


def community(model: GPT2LMHeadModel, seed: int) -> torch.Tensor:
    """Return a community that the model makes up itself, (1, LENGTH): one genus after the other, by its probability."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.full((1, 1), model.config.bos_token_id)
    special = [model.config.pad_token_id, model.config.bos_token_id, model.config.eos_token_id]
    with torch.no_grad():
        for _ in range(LENGTH - 1):
            logits = model(input_ids=found).logits[0, -1]
            logits[special] = -torch.inf
            chosen = torch.multinomial(logits.softmax(0), 1, generator=generator)
            found = torch.cat([found, chosen[None]], dim=1)
    return found
