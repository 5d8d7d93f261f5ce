"""Small models of many designs, built from configurations: no weights and no tokenizers are fetched."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as t
from torch import nn

WIDTH, HEADS, LAYERS, WORDS, TOKENS = 64, 4, 2, 128, 48
START = WIDTH**-0.5
"""Standard deviation of weights at the start: queries and keys of unit variance, as nn.Linear nearly has them."""
BASE = dict(
    vocab_size=WORDS,
    hidden_size=WIDTH,
    num_hidden_layers=LAYERS,
    num_attention_heads=HEADS,
    intermediate_size=96,
    initializer_range=START,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
GROUPED = BASE | dict(num_key_value_heads=2)
OWN_WIDTH = GROUPED | dict(head_dim=24)
"""Heads that are wider than the model's width over their number."""


@dataclass(frozen=True)
class Architecture:
    """A design. build: makes the model. batch: what it is called with. modules: calls of attention that it makes.

    width: of a head. other: a width that may be taken for it by mistake. own: (d_k) -> the factor of q·k that is right,
    where it is not 1/√d_k. normalised: heads are, so that a scale of 1 may be meant.
    """

    name: str
    build: Callable[[], nn.Module]
    modules: int
    width: int
    other: int
    batch: Callable[[], Any] | None = None
    own: Callable[[int], float] | None = None
    normalised: bool = False

    @property
    def right(self) -> float:
        return self.own(self.width) if self.own else self.width**-0.5


def tokens() -> torch.Tensor:
    return torch.randint(3, WORDS, (2, TOKENS), generator=torch.Generator().manual_seed(1))


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


class ByHand(nn.Module):
    """Attention as people write it themselves, with q·k and softmax, a causal mask, and keys of grouped heads."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(WIDTH, width, bias=False) for width in (64, 32, 32))
        for module in (self.q_proj, self.k_proj):
            nn.init.normal_(module.weight, std=START)
        self.scaling = 16**-0.5

    def forward(self, x):
        batch, n, _ = x.shape
        q = self.q_proj(x).view(batch, n, HEADS, 16).transpose(1, 2)
        k, v = (proj(x).view(batch, n, 2, 16).transpose(1, 2) for proj in (self.k_proj, self.v_proj))
        k, v = (y.repeat_interleave(2, dim=1) for y in (k, v))
        scores = q @ k.transpose(-2, -1) * self.scaling
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
        return (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(batch, n, -1)


class Blocks(nn.Module):
    """Layers in a row, each after a normalisation."""

    def __init__(self, make: Callable[[], nn.Module], call: Callable = lambda layer, x: layer(x)):
        super().__init__()
        self.layers = nn.ModuleList(make() for _ in range(LAYERS))
        self.call = call

    def forward(self, x):
        for layer in self.layers:
            x = x + self.call(layer, nn.functional.layer_norm(x, (WIDTH,)))
        return x


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 96, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


def with_weights() -> nn.Module:
    make = lambda: nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)  # noqa: E731
    return Blocks(make, lambda layer, x: layer(x, x, x, need_weights=True)[0])


def image(size: int = 28) -> dict:
    return dict(pixel_values=normal(2, 3, size, size))


def clip() -> nn.Module:
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    part = {name: BASE[name] for name in names}
    text = part | dict(vocab_size=WORDS, max_position_embeddings=TOKENS, eos_token_id=2, bos_token_id=1, pad_token_id=0)
    model = t.CLIPModel(t.CLIPConfig(text_config=text, vision_config=part | dict(image_size=28, patch_size=4)))
    return widened(model)


def widened(model: nn.Module) -> nn.Module:
    """Give the projections of queries and keys the usual start, where a configuration cannot."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and name.rsplit(".", 1)[-1] in ("q_proj", "k_proj", "query", "key"):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
    return model


def whisper() -> nn.Module:
    sizes = dict(d_model=WIDTH, encoder_layers=1, decoder_layers=1)
    sizes |= dict(
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        vocab_size=WORDS,
        num_mel_bins=8,
        max_source_positions=50,
    )
    words = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, init_std=START)
    return t.WhisperModel(t.WhisperConfig(**sizes, **words))


def mla() -> nn.Module:
    parts = dict(q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16)
    experts = dict(n_routed_experts=2, num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=32)
    return t.DeepseekV3Model(t.DeepseekV3Config(**BASE, **parts, **experts, first_k_dense_replace=2))


ARCHITECTURES = (
    Architecture(
        "GPT-2",
        lambda: t.GPT2Model(
            t.GPT2Config(vocab_size=WORDS, n_embd=WIDTH, n_layer=2, n_head=4, initializer_range=START,
                         bos_token_id=1, eos_token_id=2)
        ),
        2, 16, 32,
    ),
    Architecture("BERT", lambda: t.BertModel(t.BertConfig(**BASE)), 2, 16, 32),
    Architecture(
        "T5",
        lambda: t.T5Model(t.T5Config(vocab_size=WORDS, d_model=WIDTH, d_kv=16, num_heads=4, d_ff=96, num_layers=1)),
        3, 16, 32,
        lambda: dict(input_ids=tokens(), decoder_input_ids=tokens()),
        lambda d_k: 1.0,
    ),
    Architecture("Llama", lambda: t.LlamaModel(t.LlamaConfig(**GROUPED)), 2, 16, 32),
    Architecture("Mistral", lambda: t.MistralModel(t.MistralConfig(**OWN_WIDTH, sliding_window=16)), 2, 24, 16),
    Architecture("Qwen3", lambda: t.Qwen3Model(t.Qwen3Config(**OWN_WIDTH)), 2, 24, 16, normalised=True),
    Architecture(
        "Gemma 2",
        lambda: t.Gemma2Model(
            t.Gemma2Config(**OWN_WIDTH, query_pre_attn_scalar=64, attn_implementation="eager", sliding_window=16)
        ),
        2, 24, 16, None, lambda d_k: 64**-0.5,
    ),
    Architecture("Gemma 3", lambda: t.Gemma3TextModel(t.Gemma3TextConfig(**OWN_WIDTH, query_pre_attn_scalar=24)),
                 2, 24, 16),
    Architecture(
        "gpt-oss",
        lambda: t.GptOssModel(t.GptOssConfig(**OWN_WIDTH, num_local_experts=2, num_experts_per_tok=1)),
        2, 24, 16,
    ),
    Architecture("DeepSeek-V3 (MLA)", mla, 2, 24, 16),
    Architecture("GPT-NeoX", lambda: t.GPTNeoXModel(t.GPTNeoXConfig(**BASE)), 2, 16, 32),
    Architecture("Phi-3", lambda: t.Phi3Model(t.Phi3Config(**GROUPED)), 2, 16, 32),
    Architecture("OLMo 2", lambda: t.Olmo2Model(t.Olmo2Config(**GROUPED)), 2, 16, 32),
    Architecture(
        "Granite", lambda: t.GraniteModel(t.GraniteConfig(**GROUPED, attention_multiplier=1 / 16)),
        2, 16, 32, None, lambda d_k: 1 / 16,
    ),
    Architecture("Cohere", lambda: t.CohereModel(t.CohereConfig(**GROUPED)), 2, 16, 32),
    Architecture("Falcon", lambda: t.FalconModel(t.FalconConfig(**BASE, multi_query=True)), 2, 16, 32),
    Architecture(
        "OPT",
        lambda: t.OPTModel(
            t.OPTConfig(vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, ffn_dim=96, num_attention_heads=4,
                        word_embed_proj_dim=WIDTH, init_std=START, pad_token_id=0, bos_token_id=1, eos_token_id=2)
        ),
        2, 16, 32,
    ),
    Architecture(
        "Bloom (ALiBi)",
        lambda: t.BloomModel(
            t.BloomConfig(vocab_size=WORDS, hidden_size=WIDTH, n_layer=2, n_head=4, initializer_range=START)
        ),
        2, 16, 32,
    ),
    Architecture(
        "BART",
        lambda: t.BartModel(
            t.BartConfig(vocab_size=WORDS, d_model=WIDTH, encoder_layers=1, decoder_layers=1, init_std=START,
                         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96,
                         pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
        ),
        3, 16, 32,
    ),
    Architecture("ModernBERT", lambda: t.ModernBertModel(
        t.ModernBertConfig(**BASE, sep_token_id=2, cls_token_id=1, local_attention=16)), 2, 16, 32),
    Architecture(
        "DistilBERT",
        lambda: t.DistilBertModel(
            t.DistilBertConfig(vocab_size=WORDS, dim=WIDTH, n_layers=2, n_heads=4, hidden_dim=96,
                               initializer_range=START)
        ),
        2, 16, 32,
    ),
    Architecture(
        "ViT",
        lambda: t.ViTModel(t.ViTConfig(**{k: v for k, v in BASE.items() if "token" not in k and k != "vocab_size"},
                                       image_size=28, patch_size=4)),
        2, 16, 32, image,
    ),
    Architecture(
        "Swin",
        lambda: widened(t.SwinModel(t.SwinConfig(image_size=32, patch_size=2, embed_dim=32, depths=[2, 2],
                                                 num_heads=[2, 4], window_size=4))),
        4, 16, 32, lambda: image(32),
    ),
    Architecture("CLIP", clip, 4, 16, 32, lambda: dict(input_ids=tokens(), **image())),
    Architecture("Whisper", whisper, 3, 16, 32,
                 lambda: dict(input_features=normal(2, 8, 100), decoder_input_ids=tokens())),
    Architecture(
        "GPT-Neo",
        lambda: t.GPTNeoModel(
            t.GPTNeoConfig(vocab_size=WORDS, hidden_size=WIDTH, num_layers=2, num_heads=4, intermediate_size=96,
                           attention_types=[[["global", "local"], 1]], window_size=16, bos_token_id=1, eos_token_id=2)
        ),
        2, 16, 32, None, lambda d_k: 1.0,
    ),
    Architecture("nn.TransformerEncoder", encoder, 2, 16, 32, lambda: normal(2, TOKENS, WIDTH)),
    Architecture("nn.MultiheadAttention", with_weights, 2, 16, 32, lambda: normal(2, TOKENS, WIDTH)),
    Architecture("by hand", lambda: Blocks(ByHand), 2, 16, 32, lambda: normal(2, TOKENS, WIDTH)),
)  # fmt: skip


def build(one: Architecture) -> tuple[nn.Module, Any]:
    """Return a model and its batch, always the same."""
    torch.manual_seed(0)
    model = one.build().eval()
    return model, one.batch() if one.batch else dict(input_ids=tokens())
