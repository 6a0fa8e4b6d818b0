"""What weights and gates are drawn from, as inputs.py draws them: the type, its usual kinds, the gates
of all variants, and which weights are not learned. The weights are in starts_attention.py and
starts_mixers.py, by the names of `attnbench info NAME`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .plan import Block

# Shape, deviation and, where it is not 0, mean: a number, or an array that numpy spreads over the shape.
Start = tuple[tuple[int, ...], float] | tuple[tuple[int, ...], float, Any]
Starts = dict[str, Start]
StartsOf = Callable[[Block], Starts]

# Weights that are not learned, or not by gradients.
FROZEN = (
    "omega", "rotations", "planes", "centroids", "index_query", "index_key", "index_weight",
)  # fmt: skip

SHARE = 0.1  # the deviation of gains, shifts and biases
SELECTED = 16  # states of mamba, the catalogue's default
LEVELS = 17  # of log_linear, the catalogue's default
SLOW = -4.0  # steps softplus(x) near 0.02, within the range that Mamba starts in


def matrix(inputs: int, outputs: int) -> Start:
    return (inputs, outputs), inputs**-0.5


def squares(block: Block) -> Start:
    """Of each head a matrix from head_dim to head_dim."""
    return (block.heads, block.head_dim, block.head_dim), block.head_dim**-0.5


def shifts(*shape: int) -> Start:
    return shape, SHARE


def gains(*shape: int) -> Start:
    return shape, SHARE, 1.0


def gates_of(block: Block) -> dict[str, tuple[int, float] | tuple[int, float, float]]:
    """Of each gate its width, deviation and, where it is not 0, mean, in the variant's order."""
    dim = block.head_dim
    one, step = (1, 1.0), (1, 1.0, SLOW)
    return {
        "fox": {"forget": one},
        "gated_rfa": {"forget": one},
        "nsa": {"branches": (3, 1.0)},
        "csa": {"compress": (2 * dim, 1.0)},
        "gla": {"decay": (dim, 1.0)},
        "mamba2": {"dt": step},
        "deltanet": {"beta": one},
        "gated_deltanet": {"dt": step, "beta": one},
        "kda": {"dt": (dim, 1.0, SLOW), "beta": one},
        "hgrn2": {"forget": (dim, 1.0, 2.0)},
        "rwkv6": {"decay": (dim, 1.0, -3.5)},
        "rwkv7": {"decay": (dim, 1.0, -2.0), "rate": (dim, 1.0)},
        "log_linear": {"dt": step, "levels": (LEVELS, 1.0)},
        "ttt_linear": {"lr": one},
        "mesa": {"decay": (1, 1.0, 4.0), "beta": one},
        "path": {"w": (dim, 1.0), "beta": one},
        "mlstm": {"input": one, "forget": (1, 1.0, 4.0)},
        "rg_lru": {"recurrence": (dim, 1.0), "input": (dim, 1.0)},
        "gated_attention": {"output": (dim, 1.0)},
        "mamba": {"dt": (dim, 1.0, SLOW), "B": (SELECTED, 1.0), "C": (SELECTED, 1.0)},
    }.get(block.subject, {})
