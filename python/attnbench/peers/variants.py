"""What is compared of each variant: parameters, causal forms, inputs read, and who takes part."""

from __future__ import annotations

from dataclasses import dataclass, field

PYTORCH = ("torch", "compiled")
EXACT = ("torch", "jax", "onnxruntime", "ggml", "compiled")  # whose library has exact attention
MASKED = ("torch", "flex", "compiled")  # patterns that flex_attention takes as a mask of pairs
BOTH = (False, True)


@dataclass(frozen=True)
class Compared:
    """One form of a variant. `reads`: which of q, k and v it reads. `mixer`: it mixes all columns
    of a row, so it gets one head of the full width, and nobody turns arrays within the clock.
    `longest`: beyond it a call of the peer takes minutes."""

    name: str
    params: dict[str, int | str] = field(default_factory=dict)
    causal: tuple[bool, ...] = BOTH
    peers: tuple[str, ...] = PYTORCH
    reads: str = "qkv"
    mixer: bool = False
    longest: int | None = None


# In the catalogue's order. Parameters are the catalogue's defaults where nothing is said.
VARIANTS = (
    Compared("full", causal=(False,), peers=EXACT),
    Compared("truncated", {"window": 128}, peers=MASKED),
    Compared("linformer", {"rank": 128}, causal=(False,)),
    Compared("performer", {"features": 256}),
    Compared("linear"),
    Compared("relu"),
    Compared("conv", {"kernel": 5}, reads="v", mixer=True),
    Compared("recurrent", {"cell": "lstm"}, causal=(True,), reads="v", mixer=True),
    Compared("recurrent", {"cell": "gru"}, causal=(True,), reads="v", mixer=True),
    Compared("window_mlp", {"window": 2}, reads="v", mixer=True),
    Compared("mean", reads="v", mixer=True),
    Compared("local", {"block": 128, "look_back": 1}, peers=MASKED),
    Compared("sparse", peers=MASKED),
    Compared("longformer", {"window": 128, "global_tokens": 1}, peers=MASKED),
    Compared("bigbird", {"block": 64}, peers=MASKED),
    Compared("additive", longest=2048),
    Compared("graph", {"degree": 8}),
    Compared("sinkhorn", {"block": 64, "iterations": 8}, causal=(False,)),
    Compared("reformer", {"rounds": 4, "chunk": 64}, reads="qv"),
    Compared("synthesizer", {"kind": "dense"}, reads="qv"),
)
NAMES = tuple(dict.fromkeys(form.name for form in VARIANTS))
FEW = ("full", "truncated", "linformer", "performer", "linear")  # of --quick
