"""Weights of the gated, state space, convolution and synthetic variants and of those with scores of
their own, as starts.py describes them."""

from __future__ import annotations

import math

import numpy as np

from .plan import Block
from .starts import SELECTED, SHARE, Starts, StartsOf, gains, matrix, shifts

# Sizes that are the catalogue's defaults; another one there fails on shapes.
STATES, SHIFT, AVERAGES = 64, 64, 16  # of s4d and h3; of h3; of mega
HIDDEN = 64  # of hyena
KERNEL, EXPANSION, HALVED = 3, 2, 4  # of base_conv; of base_conv, gau and mega; of gmlp
TAPS = 3  # of short_conv
BASE = 128  # of gau and mega
RANK = 64  # of aft


def decay_rates(block: Block) -> Starts:
    """Of A_log: rates between 1 and 16."""
    return {"A_log": ((block.heads,), 0.5, math.log(4))}


def rwkv6(block: Block) -> Starts:
    return {"bonus": ((block.heads, block.head_dim), SHARE)}


def rwkv7(block: Block) -> Starts:
    of_head = (block.heads, block.head_dim)
    return {"k_k": (of_head, SHARE, 0.71), "k_a": (of_head, SHARE, 1.02)}


def ttt_linear(block: Block) -> Starts:
    of_head = (block.heads, block.head_dim)
    return {
        "theta": ((block.params["mini_batch"],), 0.01), "gain": gains(*of_head),
        "shift": shifts(*of_head), "W": ((*of_head, block.head_dim), 0.02), "b": shifts(*of_head),
    }  # fmt: skip


def mesa(block: Block) -> Starts:
    return {"ridge": ((block.heads, block.head_dim), SHARE, math.log(math.expm1(0.75)))}


def mamba(block: Block) -> Starts:
    states = SELECTED
    mean = np.log(np.arange(1, states + 1))[:, None]
    return {"A_log": ((block.heads, states, block.head_dim), SHARE, mean)}


def poles(block: Block) -> Starts:
    """S4D-Lin, equal decays and frequencies π·n, but with steps near 0.02. Of the shortest ones that it
    starts with, 0.001, a state lives for thousands of positions, and the rounding of a pole to 32 bits
    shows beyond the bounds of loading.py."""
    pairs = STATES // 2
    of_pair = (block.heads, pairs, block.head_dim)
    return {
        "log_dt": ((block.heads, block.head_dim), 0.5, math.log(0.02)),
        "log_A_real": (of_pair, SHARE, math.log(0.5)),
        "A_imag": (of_pair, SHARE, math.pi * np.arange(pairs)[:, None]),
        "C_real": (of_pair, 0.5**0.5), "C_imag": (of_pair, 0.5**0.5),
    }  # fmt: skip


def h3(block: Block) -> Starts:
    of_head, shift = (block.heads, block.head_dim), SHIFT
    found = poles(block)
    of_pair = found["C_real"][0]
    return {
        **found, "B_real": gains(*of_pair), "B_imag": shifts(*of_pair),
        "shift_C": ((block.heads, shift, block.head_dim), shift**-0.5),
        "shift_D": (of_head, 1.0), "D": (of_head, 1.0),
    }  # fmt: skip


def lru(block: Block) -> Starts:
    """States that keep 0.95 of themselves, and turn by about a radian a step."""
    width = block.width
    mean = np.array([-3.0, 0.0, -1.2])[:, None]
    return {
        "poles": ((3, width), 0.5, mean), "B": ((width, 2 * width), (2 * width) ** -0.5),
        "C": ((2 * width, width), width**-0.5),
    }  # fmt: skip


def distances(block: Block) -> int:
    return block.length if block.causal else 2 * block.length - 1


def long_conv(block: Block) -> Starts:
    taps, width = distances(block), block.width
    return {"filter": ((taps, width), taps**-0.5), "skip": ((width,), 1.0)}


def hyena(block: Block) -> Starts:
    hidden, width = HIDDEN, block.width
    made: Starts = {"frequency": gains(hidden), "skip": ((width,), 1.0)}
    for name, inputs in (("first", 3), ("second", hidden), ("third", hidden)):
        deviation = (3 * inputs) ** -0.5
        made |= {name: ((inputs, hidden), deviation), f"{name}_bias": ((hidden,), deviation)}
    return {**made, "out": ((hidden, width), (3 * hidden) ** -0.5)}


def base_conv(block: Block) -> Starts:
    width, kernel = block.width, KERNEL
    inner = EXPANSION * width
    made = {name: matrix(width, inner) for name in ("in", "gate")} | {"out": matrix(inner, width)}
    biases = {f"{name}.bias": shifts(shape[1]) for name, (shape, _) in made.items()}
    return {**made, **biases, "taps": ((kernel, inner), (3 * kernel) ** -0.5)}


def short_conv(block: Block) -> Starts:
    return {"taps": ((block.heads, TAPS, block.head_dim), (3 * TAPS) ** -0.5)}


def rg_lru(block: Block) -> Starts:
    return {"Lambda": ((block.heads, block.head_dim), 0.5, -5.0)}


def gmlp(block: Block) -> Starts:
    width, length = block.width, block.length
    units = HALVED * width // 2
    return {
        "in": matrix(width, 2 * units), "in_bias": shifts(2 * units), "gain": gains(units),
        "shift": shifts(units), "spatial": ((length, length), length**-0.5),
        "spatial_bias": gains(length, 1), "out": matrix(units, width), "out_bias": shifts(width),
    }  # fmt: skip


def aft(block: Block) -> Starts:
    factor = ((block.length, RANK), 0.3)
    return {"left": factor, "right": factor}


def narrow(block: Block) -> Starts:
    """Of queries and keys that one projection gives."""
    base = BASE
    of_rows = {f"{side}_scale": gains(base) for side in ("query", "key")}
    of_rows |= {f"{side}_shift": shifts(base) for side in ("query", "key")}
    return {"base": matrix(block.width, base), **of_rows}


def gau(block: Block) -> Starts:
    width, units = block.width, EXPANSION * block.width
    return {
        **narrow(block), "gate": matrix(width, units), "value": matrix(width, units),
        "out": matrix(units, width),
    }  # fmt: skip


def mega(block: Block) -> Starts:
    width, states = block.width, AVERAGES
    units, shape = EXPANSION * width, (states, width)
    average: Starts = {
        "step": (shape, 0.2), "damping": (shape, 0.2), "output": (shape, 1.0),
        "input": (shape, 0.02, (-1.0) ** np.arange(states)[:, None]),
    }  # fmt: skip
    made = {"skip": ((width,), 1.0), **narrow(block), **average, "out": matrix(units, width)}
    if not block.causal:
        made |= {f"reverse_{name}": how for name, how in average.items()}
    for name, outputs in (
        ("value", units), ("reset", units), ("update", width), ("candidate", width)
    ):  # fmt: skip
        made |= {name: matrix(width, outputs), f"{name}_bias": shifts(outputs)}
    return {**made, "base_bias": shifts(BASE)}


WEIGHTS: dict[str, StartsOf] = {
    made.__name__: made
    for made in (
        rwkv6, rwkv7, ttt_linear, mesa, mamba, h3, lru, long_conv, hyena, base_conv, gmlp, aft, gau,
        mega, short_conv, rg_lru,
    )
} | {
    "s4d": poles,
    **dict.fromkeys(("mamba2", "gated_deltanet", "kda", "log_linear"), decay_rates),
}  # fmt: skip
