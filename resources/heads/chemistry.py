"""RXNMapper as the package rxnmapper carries it (IBM, MIT licence): an ALBERT, whose layers share their weights."""

import copy
import importlib.util
import json
import re
from pathlib import Path

import torch
from transformers import AlbertConfig, AlbertForMaskedLM

SIGNS = re.compile(
    r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>>?|\*|\$|%[0-9]{2}|[0-9]"
)
REACTIONS = {
    # The last step to sildenafil, a sulfonamide from N-methylpiperazine.
    "sildenafil": "CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)Cl.CN1CCNCC1.CCN(CC)CC.ClCCl"
    ">>CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1",
    # The last step to imatinib, an amide from the acid chloride.
    "imatinib": "Cc1ccc(N)cc1Nc1nccc(n1)-c1cccnc1.CN1CCN(CC1)Cc1ccc(cc1)C(=O)Cl.c1ccncc1"
    ">>Cc1ccc(cc1Nc1nccc(n1)-c1cccnc1)NC(=O)c1ccc(cc1)CN1CCN(C)CC1",
}


def folder() -> Path:
    """Return the folder of the package's model."""
    package = importlib.util.find_spec("rxnmapper")
    if package is None or package.origin is None:
        raise SystemExit("The weights are those of a package: pip install rxnmapper==0.4.3")
    return Path(package.origin).parent / "models" / "transformers" / "albert_heads_8_uspto_all_1310k"


def tokens(reaction: str) -> torch.Tensor:
    """Return the tokens of a reaction in SMILES, shape (1, token)."""
    known = {sign: place for place, sign in enumerate((folder() / "vocab.txt").read_text().split())}
    signs = SIGNS.findall(reaction)
    if "".join(signs) != reaction:
        raise SystemExit(f"{reaction}: not all of it is read")
    return torch.tensor([[known[sign] for sign in ("[CLS]", *signs, "[SEP]")]])


def whole() -> AlbertForMaskedLM:
    """Return the model with the package's weights."""
    config = AlbertConfig(**json.loads((folder() / "config.json").read_text()))
    model = AlbertForMaskedLM(config)
    weights = torch.load(folder() / "pytorch_model.bin", map_location="cpu", weights_only=True)
    missing, unknown = model.load_state_dict(weights, strict=False)
    if set(missing) - {"predictions.decoder.weight", "predictions.decoder.bias"} or [
        name for name in unknown if "pooler" not in name and "position_ids" not in name
    ]:
        raise SystemExit(f"weights missing: {missing}; unknown: {unknown}")
    return model.eval()


class Unrolled(torch.nn.Module):
    """The same layers one after the other, each at a place of its own, so that all of them can be captured."""

    def __init__(self, model: AlbertForMaskedLM) -> None:
        super().__init__()
        albert = model.albert
        self.config, self.embeddings = albert.config, albert.embeddings
        self.widened = albert.encoder.embedding_hidden_mapping_in
        shared = albert.encoder.albert_layer_groups[0].albert_layers[0]
        self.layers = torch.nn.ModuleList(copy.deepcopy(shared) for _ in range(albert.config.num_hidden_layers))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the last hidden states."""
        hidden = self.widened(self.embeddings(input_ids))
        for layer in self.layers:
            found = layer(hidden, None)
            hidden = found[0] if isinstance(found, tuple) else found
        return hidden
