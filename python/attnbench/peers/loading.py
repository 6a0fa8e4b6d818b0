"""Loads a block on a side, asks for its answers, and checks that two sides' answers agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .plan import DECODE, STEP, Block
from .sides import Side

# Relative Frobenius norms in float32: sums of 8192 terms in another order differ by about sqrt(n)
# roundings (5e-6), through an exp by more; a gradient passes through two or three such sums.
MOST = {"forward": 1e-5, "out": 1e-5, "grad": 3e-5}
# Of a decode step, by the type of the peer's cache. Every side's cache holds its numbers as they are
# (see inputs.cached), so that arithmetic alone differs. In bfloat16 the answer is rounded, 2e-3.
# Beside f16 ggml adds values up in 11 bits; the error grows as the root of the length, to 2e-2 at
# 16384. Beside integers ggml's sums are of float32, and ours, where the processor multiplies
# integers, rounds queries and weights to 16 bits: 2^-11, see variants/api/cache_rounding.h.
MOST_DECODED = {
    "float32": 1e-5, "f32": 1e-5, "bfloat16": 5e-3, "f16": 5e-2, "q8_0": 5e-4, "q4_0": 5e-4,
}  # fmt: skip
# The first loss is one forward; the next two follow AdamW, whose first steps have the size of the
# learning rate whatever the gradient's, so that rounding of gradients near zero shows in them.
MOST_LOSS = (1e-5, 1e-4, 1e-4)
# That size also hides clipping from the losses, and decay is too small to show. So weights are
# compared too, after steps with an epsilon that dwarfs the gradients, and settings that bite.
# Their change is compared, about 2e-5 of a norm's gain of 1, where rounding is 6e-8: 3e-3 of it.
BITING = {"epsilon": 1e-2, "weight_decay": 1.0, "clip": 0.1}
BITING_STEPS, MOST_CHANGE = 2, 1e-2


# Weights whose gradient is 0: softmax does not see what all keys share. Beside it a gradient of the
# same kind; what rounding leaves of the first is this share of the second at most.
GRADIENTLESS = {"mega": ("grad_key_shift", "grad_query_shift")}
MOST_LEFT = 1e-3


class Disagreement(Exception):
    """Two sides answer differently; nothing is timed then."""


def load(side: Side, block: Block, inputs: dict[str, Any]) -> dict[str, Any]:
    kind = {STEP: "model", DECODE: "cache"}.get(block.subject, "attention")
    return side.ask(kind, **inputs)


def answers(side: Side, block: Block, inputs: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What agreement is judged by: outputs and gradients, or the first losses and how the first
    steps change the weights. The block is loaded before and after."""
    own = folder / side.name
    own.mkdir(exist_ok=True)
    if block.subject == DECODE:
        return written(side, own)
    if block.subject != "step":
        return without_gradientless(block, without_unread(block, written(side, own)))
    losses = side.ask("step", repeat=len(MOST_LOSS))["losses"]
    load(side, block, {**inputs, **BITING})
    side.ask("step", repeat=BITING_STEPS)
    change = {
        f"change_{name}": weight - np.load(folder / f"{name}.npy")
        for name, weight in written(side, own).items()
    }
    load(side, block, inputs)
    return {**{f"loss_{i}": np.array([loss]) for i, loss in enumerate(losses, 1)}, **change}


def without_unread(block: Block, found: dict[str, Any]) -> dict[str, Any]:
    """Without the gradients of inputs that the variant does not read, which are zero."""
    unread = {f"grad_{name}" for name in "qkv" if name not in block.reads}
    for name in unread & found.keys():
        if found[name].any():
            raise Disagreement(f"{name} is not zero, and {block.subject} does not read it")
    return {name: array for name, array in found.items() if name not in unread}


def without_gradientless(block: Block, found: dict[str, Any]) -> dict[str, Any]:
    """Without the gradients that are rounding alone."""
    if block.subject not in GRADIENTLESS:
        return found
    none, beside = GRADIENTLESS[block.subject]
    share = np.linalg.norm(found[none]) / np.linalg.norm(found[beside])
    if not share <= MOST_LEFT:
        raise Disagreement(f"{none} is {share:.1e} of {beside}, and it should be 0")
    return {name: array for name, array in found.items() if name != none}


def written(side: Side, folder: Path) -> dict[str, np.ndarray]:
    side.ask("write", folder=str(folder))
    found = {file.stem: np.load(file) for file in sorted(folder.glob("*.npy"))}
    for file in folder.glob("*.npy"):
        file.unlink()
    return found


def agreement(
    ours: dict[str, Any], theirs: dict[str, Any], *, forward_only: bool = False, cache: str = ""
) -> dict[str, float]:
    """Relative differences by name, of all weights' changes the largest; Disagreement when one is
    beyond its bound, or when the sides do not answer with the same arrays."""
    expected = {"forward"} if forward_only else set(ours)
    if wrong := expected ^ theirs.keys():
        raise Disagreement(f"only one side answers with {', '.join(sorted(wrong))}")
    found: dict[str, float] = {}
    for name in sorted(expected):
        kind, _, rest = name.partition("_")
        most = MOST_DECODED[cache] if kind == DECODE else bound(kind, rest)
        error = difference(ours[name], theirs[name])
        if not error <= most:
            raise Disagreement(f"{name} differs by {error:.1e} relative, more than {most:.0e}")
        key = "weights" if kind == "change" else name
        found[key] = max(error, found.get(key, 0.0))
    return found


def bound(kind: str, rest: str) -> float:
    if kind == "loss":
        return MOST_LOSS[int(rest) - 1]
    return MOST_CHANGE if kind == "change" else MOST[kind]


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    if ours.shape != theirs.shape:
        raise Disagreement(f"shapes {list(ours.shape)} and {list(theirs.shape)}")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    norm = np.linalg.norm(b)
    if not norm > 0:
        raise Disagreement("an answer of zeros")
    return float(np.linalg.norm(a - b) / norm)
