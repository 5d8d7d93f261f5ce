"""Train a small vision transformer to fill in hidden patches of photographs, and write what its heads see of one.

The photographs are those of scikit-image whose makers gave them to the public domain or under CC0, as the package says
of each. What it needs stands in resources/README.md.

python vision.py --output .
"""

import argparse
import importlib.util
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from transformers import ViTConfig, ViTForMaskedImageModeling

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import sqrtdk  # noqa: E402

PHOTOGRAPHS = (
    "astronaut.png",  # NASA, public domain
    "brick.png",  # CC0Textures, CC0
    "cell.png",  # P. Müller and others, CC0
    "chelsea.png",  # S. van der Walt, CC0
    "clock_motion.png",  # S. van der Walt, public domain
    "coffee.png",  # R. Michetti, CC0
    "grass.png",  # linolafett, CC0
    "gravel.png",  # CC0Textures, CC0
    "hubble_deep_field.jpg",  # NASA, public domain
    "retina.jpg",  # M. Häggström, CC0
    "rocket.jpg",  # SpaceX, public domain
)
HELD_OUT = "camera.png"
"""The photograph, by L. Varshney under CC0, that no training sees, and whose middle the trained model reads."""
SIDE = 48
PATCH = 4
ROW = SIDE // PATCH
WIDTH = 128
HIDDEN_SHARE = 0.5
BATCH = 8
STEPS = 550
PEAK = 2e-3
WARM_UP = 50
SEED = 1


def sizes(name: str) -> list[torch.Tensor]:
    """Return a photograph in grey at its size, a half and a quarter of it, where a crop still fits, from −1 to 1."""
    package = importlib.util.find_spec("skimage")
    if package is None or package.origin is None:
        raise SystemExit("The photographs are those of a package: pip install scikit-image==0.26.0")
    whole = Image.open(Path(package.origin).parent / "data" / name).convert("L")
    shapes = [(whole.width // part, whole.height // part) for part in (1, 2, 4)]
    resized = [np.array(whole.resize(shape, Image.Resampling.BOX), np.float32) for shape in shapes if min(shape) > SIDE]
    return [torch.from_numpy(image / 127.5 - 1) for image in resized]


def crops(photographs: list[list[torch.Tensor]], count: int) -> torch.Tensor:
    """Return crops (count, 1, SIDE, SIDE) at random places of photographs at random sizes, half of them mirrored."""
    chosen = []
    for _ in range(count):
        photograph = photographs[int(torch.randint(len(photographs), ()))]
        image = photograph[int(torch.randint(len(photograph), ()))]
        top, left = (int(torch.randint(extent - SIDE, ())) for extent in image.shape)
        crop = image[top : top + SIDE, left : left + SIDE]
        chosen.append(crop.flip(1) if torch.rand(()) < 0.5 else crop)
    return torch.stack(chosen)[:, None]


def hidden(count: int) -> torch.Tensor:
    """Return which patches are hidden, (count, patch)."""
    return torch.rand(count, ROW**2) < HIDDEN_SHARE


def rate(step: int) -> float:
    """Return the learning rate: a rise over WARM_UP steps, then half a cosine to a tenth."""
    if step < WARM_UP:
        return PEAK * (step + 1) / WARM_UP
    return PEAK * (0.55 + 0.45 * math.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP)))


def places() -> torch.Tensor:
    """Return where positions start: sines and cosines of row and column, (1, class token and patches, WIDTH)."""
    angles = torch.arange(ROW)[:, None] * 10000.0 ** (-torch.arange(WIDTH // 4) / (WIDTH // 4))
    one = torch.cat([angles.sin(), angles.cos()], dim=1)
    both = torch.cat([one[:, None].expand(-1, ROW, -1), one.expand(ROW, -1, -1)], dim=2)
    return torch.cat([torch.zeros(1, WIDTH), both.reshape(ROW**2, WIDTH)])[None]


def fresh() -> ViTForMaskedImageModeling:
    """Return the model before training: patches, a class token, and positions that are learned from `places` on."""
    shape = {"hidden_size": WIDTH, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 4 * WIDTH}
    image = {"image_size": SIDE, "patch_size": PATCH, "num_channels": 1, "encoder_stride": PATCH}
    rest = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": WIDTH**-0.5}
    model = ViTForMaskedImageModeling(ViTConfig(**shape, **image, **rest))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        model.vit.embeddings.position_embeddings.copy_(places())
    return model


def train(photographs: list[list[torch.Tensor]]) -> ViTForMaskedImageModeling:
    """Return the model after STEPS steps of AdamW on random crops, products at half precision."""
    model = fresh()
    optimiser = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.95), weight_decay=0.05)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(pixel_values=crops(photographs, BATCH), bool_masked_pos=hidden(BATCH)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def errors(model: ViTForMaskedImageModeling, images: torch.Tensor, where: torch.Tensor) -> tuple[float, ...]:
    """Return mean absolute errors on hidden pixels: of the model, and of the mean of what is shown."""
    pixels = where.view(-1, 1, ROW, ROW).repeat_interleave(PATCH, 2).repeat_interleave(PATCH, 3)
    with torch.no_grad():
        filled = model(pixel_values=images, bool_masked_pos=where).reconstruction
    shown = (images * ~pixels).sum((1, 2, 3), keepdim=True) / (~pixels).sum((1, 2, 3), keepdim=True)
    return tuple(float((guess - images).abs()[pixels].mean()) for guess in (filled, shown))


def main(output: Path) -> None:
    """Train, say how well, and capture the heads on the middle of the unseen photograph at a quarter of its size."""
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    unseen = sizes(HELD_OUT)
    trial = crops([unseen], 128), hidden(128)
    model = train([sizes(name) for name in PHOTOGRAPHS])
    print("errors of the model and of the mean, from −1 to 1: {:.4f}, {:.4f}".format(*errors(model, *trial)))
    image = unseen[-1]
    top, left = ((extent - SIDE) // 2 for extent in image.shape)
    capture = sqrtdk.capture(model, {"pixel_values": image[None, None, top : top + SIDE, left : left + SIDE]})
    path = capture.save(output / "vit-camera.npz")
    print(path, path.stat().st_size, capture.audit(stage="trained"), f"{time.process_time():.0f} CPU seconds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    main(parser.parse_args().output)
