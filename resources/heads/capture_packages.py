"""Write the dumps of models whose weights a Python package carries: what it needs stands in resources/README.md.

python capture_packages.py --output . --scratch /tmp
"""

import argparse
import sys
from pathlib import Path

import chemistry
import microbes
import speech
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import sqrtdk  # noqa: E402

MANY = 6
"""Of more layers every second is kept, from the first on."""


def thinned(layers: int) -> list[int]:
    """Return the layers that are kept."""
    return list(range(0, layers, 2 if layers > MANY else 1))


def main(output: Path, scratch: Path) -> None:
    """Capture each model once for each of its inputs."""
    torch.set_num_threads(1)
    captures = {}
    mapper = chemistry.Unrolled(chemistry.whole())
    for name, reaction in chemistry.REACTIONS.items():
        batch = {"input_ids": chemistry.tokens(reaction)}
        captures[f"rxnmapper-{name}"] = sqrtdk.capture(mapper, batch, layers=thinned(len(mapper.layers)))
    decoder = microbes.whole()
    batch = {"input_ids": microbes.community(decoder, seed=1)}
    captures["mgm-community"] = sqrtdk.capture(decoder, batch, layers=thinned(decoder.config.n_layer))
    encoder = speech.encoder()
    heard = speech.features(speech.acts()[:1500], scratch)
    # 1500 frames are too many for a small file: queries and heads are drawn, all keys are kept.
    captures["whisper-tiny-acts"] = sqrtdk.capture(encoder, {"input_features": heard}, tokens=192, heads=2)
    for name, capture in captures.items():
        path = capture.save(output / f"{name}.npz")
        print(path, path.stat().st_size, capture.audit(stage="trained").ok)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for what is read aloud")
    chosen = parser.parse_args()
    main(chosen.output, chosen.scratch)
