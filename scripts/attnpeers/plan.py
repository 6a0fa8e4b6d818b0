"""What is measured: blocks of one subject at one shape, which every side loads once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

PEERS = ("torch", "jax", "onnxruntime")
TITLES = {
    "torch": "PyTorch",
    "jax": "JAX",
    "onnxruntime": "onnxruntime",
    "compiled": "PyTorch compiled",  # only when asked for: compiling would double the time
}
PYTORCH = ("torch", "compiled")
SUBJECTS = ("full", "truncated", "linformer", "performer", "linear", "step")
HEADS, HEAD_DIM, BATCH = 8, 64, 1
PARAMS: dict[str, dict[str, int]] = {
    "truncated": {"window": 128},
    "linformer": {"rank": 128},
    "performer": {"features": 256},
}
CAUSAL = {"truncated": (False, True), "performer": (False, True), "linear": (False, True)}
# Long Range Arena's small and base encoders: width, heads, hidden width of the feed-forward.
MODELS = ((64, 2, 128), (256, 4, 1024))
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
    params: dict[str, int] = field(default_factory=dict)
    feed_forward: int = 0  # of the step's model

    @property
    def width(self) -> int:
        return self.heads * self.head_dim

    @property
    def spec(self) -> str:
        """As `attnbench` takes it: `linformer[rank=128]`."""
        inside = ",".join(f"{k}={v}" for k, v in self.params.items())
        return f"{self.subject}[{inside}]" if inside else self.subject

    def title(self) -> str:
        if self.subject == "step":
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

    def among(self, peers: tuple[str, ...]) -> Wanted:
        """The same with only these libraries."""
        return replace(self, peers=peers)


def blocks(wanted: Wanted) -> list[Block]:
    """Thread counts apart: the processes start anew for each."""
    return [block for threads in wanted.threads for block in _blocks(wanted, threads)]


def _blocks(wanted: Wanted, threads: int) -> Iterable[Block]:
    attention = ("forward", "train")
    if "full" in wanted.subjects and wanted.peers:
        for length in wanted.lengths:
            budget = 4.0 if wanted.quick else 8.0
            yield Block("full", length, threads, attention, wanted.peers, budget)
    torch = tuple(peer for peer in wanted.peers if peer in PYTORCH)
    if not torch:  # the others have no written-out variants and no training step here
        return
    for name in SUBJECTS[1:-1]:
        if name not in wanted.subjects:
            continue
        for length in wanted.lengths[-1:] if wanted.quick else wanted.lengths:
            for causal in CAUSAL.get(name, (False,)):
                yield Block(
                    name, length, threads, attention, torch,
                    1.0 if wanted.quick else 1.5, causal, params=PARAMS.get(name, {}),
                )  # fmt: skip
    if "step" in wanted.subjects:
        for width, heads, feed_forward in MODELS[:1] if wanted.quick else MODELS:
            for length in wanted.step_lengths:
                yield Block(
                    "step", length, threads, ("step",), torch, 4.0 if wanted.quick else 10.0,
                    batch=STEP_BATCH, heads=heads, head_dim=width // heads,
                    feed_forward=feed_forward,
                )  # fmt: skip
