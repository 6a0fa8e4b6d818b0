"""What is measured: blocks of one subject at one shape, which every side loads once; and what is
compared of each variant: parameters, causal forms, inputs read, and who takes part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

PYTORCH = ("torch", "compiled")
EXACT = ("torch", "jax", "onnxruntime", "ggml", "compiled")  # whose library has exact attention
MASKED = ("torch", "flex", "compiled")  # patterns that flex_attention takes as a mask of pairs
BOTH = (False, True)
PAST = (True,)  # of what never sees the future


@dataclass(frozen=True)
class Compared:
    """One form of a variant. `reads`: which of q, k and v it reads. `mixer`: it mixes all columns
    of a row, so it gets one head of the full width, and nobody turns arrays within the clock.
    `longest`: beyond it a call of the peer takes minutes, or `beyond`, the reason given there.
    `without`: peers that cannot do it, and why."""

    name: str
    params: dict[str, int | str] = field(default_factory=dict)
    causal: tuple[bool, ...] = BOTH
    peers: tuple[str, ...] = PYTORCH
    reads: str = "qkv"
    mixer: bool = False
    longest: int | None = None
    beyond: str | None = None
    without: dict[str, str] = field(default_factory=dict)


UNROLLED = {
    "compiled": "torch.compile unrolls one mini-batch after the other, 512 at length 8192, into one "
    "graph of thousands of operations"
}
DATA_DEPENDENT = {
    "compiled": "torch.compile breaks the graph where sizes follow from the data, and compiles anew "
    "for each size"
}
# Parameters are the catalogue's defaults where nothing is said.
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
    # Patterns.
    Compared("sinks", {"window": 512, "sinks": 4}, causal=PAST, peers=MASKED),
    Compared("dilated", {"segment": 512, "levels": 4, "ratio": 2}, peers=MASKED),
    Compared("hierarchical", {"block": 64}),
    # Low rank. A block or a layer with projections of its own turns its rows within the clock, on
    # every side: its heads are part of it.
    Compared("memory_compressed", {"stride": 3}),
    Compared("nystrom", {"landmarks": 64, "iterations": 6}, causal=(False,)),
    Compared("latent", {"latents": 64, "layers": 1}, causal=(False,)),
    Compared("luna", {"latents": 64}),
    Compared("induced", {"latents": 16}, causal=(False,), reads="v"),
    Compared("mla", {"latent": 128, "rotary": 32}, reads="v"),
    Compared(
        "oracle_rank",
        {"rank": 16},
        causal=(False,),
        longest=512,
        beyond="oracle_rank decomposes n x n weights, at most 512 positions",
    ),
    # Kernel.
    Compared("cosformer"),
    Compared("taylor", {"dim": 16}),
    Compared("rfa", {"directions": 64}),
    Compared("gated_rfa", {"directions": 256}, causal=PAST),
    Compared("hedgehog"),
    # Hashing or routing.
    Compared("clustered", {"clusters": 100, "bits": 63, "iterations": 10}, causal=(False,)),
    Compared(
        "improved_clustered",
        {"clusters": 100, "keys": 32, "bits": 63, "iterations": 10},
        causal=(False,),
    ),
    Compared("routing", causal=(False,)),
    Compared("yoso", {"hashes": 32, "bits": 10}),
    # Selection.
    Compared("topk", {"keys": 32}),
    Compared("moba", {"block": 64, "blocks": 4}, causal=PAST, without=DATA_DEPENDENT),
    Compared("dsa", {"keys": 64, "index_heads": 2, "index_dim": 16}, causal=PAST),
    Compared(
        "nsa",
        {"block": 64, "blocks": 16, "window": 511, "compress_block": 32, "compress_stride": 16},
        causal=PAST,
        without=DATA_DEPENDENT,
    ),
    Compared(
        "csa",
        {"stride": 4, "window": 127, "keys": 64, "index_heads": 2, "index_dim": 16},
        causal=PAST,
    ),
    # Normalisers.
    Compared("softmax_one", peers=MASKED),
    Compared("sigmoid"),
    Compared("qk_norm"),
    Compared("talking_heads"),
    Compared("differential"),
    Compared("entmax", longest=2048),
    Compared("fox", causal=PAST, peers=MASKED),
    Compared("softcap"),
    Compared("gated_attention"),
    # gated: each reads gates too
    Compared("gla", causal=PAST),
    Compared("mamba2", causal=PAST),
    Compared("deltanet", causal=PAST),
    Compared("gated_deltanet", causal=PAST),
    Compared("kda", causal=PAST),
    Compared("retention", causal=PAST),
    Compared("lightning", causal=PAST),
    Compared("hgrn2", causal=PAST, reads="qv"),
    Compared("rwkv6", causal=PAST),
    Compared("rwkv7", causal=PAST),
    Compared("log_linear", causal=PAST),
    Compared("ttt_linear", {"mini_batch": 16}, causal=PAST, without=UNROLLED),
    Compared("mesa", {"iterations": 30}, causal=PAST),
    Compared("path", causal=PAST),
    Compared("mlstm", causal=PAST),
    # state space
    Compared("mamba", causal=PAST, reads="v"),
    Compared("s4d", causal=PAST, reads="v"),
    Compared("lru", causal=PAST, reads="v", mixer=True),
    Compared("h3", causal=PAST),
    Compared("rg_lru", causal=PAST, reads="v"),
    # convolution
    Compared("long_conv", reads="v", mixer=True),
    Compared("hyena", {"bands": 1}),
    Compared("base_conv", causal=PAST, reads="v", mixer=True),
    Compared("short_conv", causal=PAST),
    # synthetic
    Compared("fnet", causal=(False,), reads="v", mixer=True),
    Compared("gmlp", reads="v", mixer=True),
    Compared("aft", {"kind": "full"}),
    # other scores
    Compared("gau", reads="v", mixer=True),
    Compared("mega", reads="v", mixer=True),
)
NAMES = tuple(dict.fromkeys(form.name for form in VARIANTS))
FEW = ("full", "truncated", "linformer", "performer", "linear")  # of --quick


PEERS = ("torch", "jax", "onnxruntime", "ggml")
TITLES = {
    "torch": "PyTorch",
    "jax": "JAX",
    "onnxruntime": "onnxruntime",
    "ggml": "ggml",
    # Only when asked for: they compile for 10 s and more a shape.
    "flex": "PyTorch flex",
    "compiled": "PyTorch compiled",
}
STEP = "step"
DECODE = "decode"  # a step of exact attention over a cache
SUBJECTS = (*NAMES, STEP, DECODE)
# Its shape, and what each peer holds in the cache beside a --kv-dtype of ours.
DECODE_HEADS, DECODE_KV_HEADS, DECODE_HEAD_DIM = 8, 2, 128
CACHES = {
    "float32": {"torch": "float32", "ggml": "f32"},
    "bfloat16": {"torch": "bfloat16", "ggml": "f16"},
    "int8": {"ggml": "q8_0"},
    "int4": {"ggml": "q4_0"},
}
QUICK = (*FEW, STEP)
HEADS, HEAD_DIM, BATCH = 8, 64, 1
# Width, heads, hidden width of the feed-forward: Long Range Arena's small encoder, one between, and its base encoder.
MODELS = ((64, 2, 128), (128, 4, 512), (256, 4, 1024))
STEP_BATCH, LAYERS, VOCAB, CLASSES = 32, 2, 32, 10
ADAMW = {
    "learning_rate": 1e-3,
    "beta1": 0.9,
    "beta2": 0.98,
    "epsilon": 1e-9,
    "weight_decay": 0.01,
    "clip": 1.0,
}


@dataclass(frozen=True)
class Block:
    """One subject at one shape on so many threads; `modes` are timed one after the other."""

    subject: str  # a variant, or "step"
    length: int
    threads: int
    modes: tuple[str, ...]
    peers: tuple[str, ...]
    budget_s: float
    causal: bool = False
    batch: int = BATCH
    heads: int = HEADS
    head_dim: int = HEAD_DIM
    params: dict[str, Any] = field(default_factory=dict)
    kv_heads: int = 0  # of decoding
    kv_dtype: str = ""
    feed_forward: int = 0  # of the step's model
    reads: str = "qkv"  # which of them the variant reads
    longest: int | None = None  # beyond it a call of the peer takes minutes
    beyond: str | None = None  # the reason in place of these minutes
    without: dict[str, str] = field(default_factory=dict)  # who cannot do it, and why

    @property
    def width(self) -> int:
        return self.heads * self.head_dim

    @property
    def spec(self) -> str:
        """As `attnbench` takes it: `linformer[rank=128]`."""
        inside = ",".join(f"{k}={v}" for k, v in self.params.items())
        return f"{self.subject}[{inside}]" if inside else self.subject

    @property
    def variant(self) -> dict[str, Any]:
        own = self.subject not in (STEP, DECODE)  # these are of exact attention
        return {"name": self.subject, "params": self.params} if own else {"name": "full", "params": {}}

    def peer_cache(self, peer: str) -> str:
        """The type of that peer's cache, where a step is decoded."""
        return CACHES[self.kv_dtype][peer] if self.kv_dtype else ""

    def title(self) -> str:
        if self.subject == DECODE:
            return f"decode step, cache of {self.kv_dtype}, length {self.length}"
        if self.subject == STEP:
            return f"training step, d_model {self.width}, length {self.length}"
        return f"{self.spec}{', causal' if self.causal else ''}, length {self.length}"

    def axes(self, mode: str) -> dict[str, Any]:
        return {
            "mode": mode,
            "length": self.length,
            "batch": self.batch,
            "heads": self.heads,
            "head_dim": self.head_dim,
            "causal": self.causal,
            "threads": self.threads,
            **({"kv_heads": self.kv_heads, "kv_dtype": self.kv_dtype} if self.kv_dtype else {}),
        }


@dataclass(frozen=True)
class Wanted:
    """The command line, resolved."""

    subjects: tuple[str, ...]
    peers: tuple[str, ...]
    lengths: tuple[int, ...]
    step_lengths: tuple[int, ...]
    threads: tuple[int, ...]
    quick: bool
    decode_lengths: tuple[int, ...] = (4096, 16384)

    def among(self, peers: tuple[str, ...]) -> Wanted:
        """The same with only these libraries."""
        return replace(self, peers=peers)


def without_peer(catalogue: Iterable[str]) -> dict[str, str]:
    """The variants that nobody is compared with, and why."""
    reason = "no peer: python/attnbench/peers/plan.py does not name it"
    return {name: reason for name in catalogue if name not in NAMES}


def blocks(wanted: Wanted) -> list[Block]:
    """Thread counts apart: the processes start anew for each."""
    return [block for threads in wanted.threads for block in _blocks(wanted, threads)]


def _blocks(wanted: Wanted, threads: int) -> Iterable[Block]:
    for form in VARIANTS:
        peers = tuple(peer for peer in wanted.peers if peer in form.peers)
        if form.name not in wanted.subjects or not peers:
            continue
        exact = form.name == "full"  # the one that all are compared at, in every length
        for length in wanted.lengths[-1:] if wanted.quick and not exact else wanted.lengths:
            for causal in form.causal:
                yield attention_block(form, length, threads, peers, causal, wanted.quick)
    if DECODE in wanted.subjects:
        yield from decode_blocks(wanted, threads)
    torch = tuple(peer for peer in wanted.peers if peer in PYTORCH)
    if STEP in wanted.subjects and torch:  # the others have no training step here
        for width, heads, feed_forward in MODELS[:1] if wanted.quick else MODELS:
            for length in wanted.step_lengths:
                yield Block(
                    STEP, length, threads, (STEP,), torch, 4.0 if wanted.quick else 10.0,
                    batch=STEP_BATCH, heads=heads, head_dim=width // heads,
                    feed_forward=feed_forward,
                )  # fmt: skip


def decode_blocks(wanted: Wanted, threads: int) -> Iterable[Block]:
    for kv_dtype, types in CACHES.items():
        peers = tuple(peer for peer in wanted.peers if peer in types)
        for length in wanted.decode_lengths if peers else ():
            yield Block(
                DECODE, length, threads, (DECODE,), peers, 2.0 if wanted.quick else 6.0, causal=True,
                heads=DECODE_HEADS, head_dim=DECODE_HEAD_DIM, kv_heads=DECODE_KV_HEADS,
                kv_dtype=kv_dtype,
            )  # fmt: skip


def attention_block(
    form: Compared, length: int, threads: int, peers: tuple[str, ...], causal: bool, quick: bool
) -> Block:
    short, long = (4.0, 8.0) if form.name == "full" else (1.0, 1.5)
    heads = 1 if form.mixer else HEADS
    return Block(
        form.name, length, threads, ("forward", "train"), peers, short if quick else long, causal,
        heads=heads, head_dim=HEADS * HEAD_DIM // heads, params=form.params, reads=form.reads,
        longest=form.longest, beyond=form.beyond, without=form.without,
    )  # fmt: skip
