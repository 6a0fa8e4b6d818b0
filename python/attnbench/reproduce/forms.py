"""What entries compute themselves.

Linear attention with decay and the delta rule written out: step by step, and in chunks of any size, of which one of all positions is the parallel
form. With rows q_t, k_t, v_t, a_t = exp(log_decay_t) and a strength β_t:
  decay       S_t = diag(a_t)·S_{t-1} + k_tᵀ·v_t,  o_t = q_t·S_t  (RetNet, arXiv:2307.08621, eqs. 5-7; GLA, arXiv:2312.06635, eq. 3)
  delta rule  S_t = S̄ + β_t·k_tᵀ·(v_t - k_t·S̄) with S̄ = diag(a_t)·S_{t-1}  (arXiv:2406.06484, section 3; arXiv:2412.06464)
Every array and sum is of the type of q: float32 tells what rounding does to a form. Steps cost n·d², chunks of C n·C·d² or less.

Performer's estimate of one pair, exp(x·y), read from outputs of `performer`.

Its outputs are quotients. With the keys y and −x beside each other, and values of which the first
is one, the output of the query x is K(x, y)/(K(x, y) + K(x, −x)). For positive and for hyperbolic
features K(x, −x) is exp(−‖x‖²) whatever directions are drawn, for e^{ωx} and e^{−ωx} cancel.

Tokens that are independent or follow each other, and random projections of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .product import Product


def pair(dim: int, length: float, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors of this length with this angle between them."""
    x, y = np.zeros(dim), np.zeros(dim)
    x[0] = length
    y[:2] = length * math.cos(angle), length * math.sin(angle)
    return x, y


def estimates(
    product: Product, variant: str, x: np.ndarray, y: np.ndarray, draws: int, seed: int
) -> np.ndarray:
    """Estimates of exp(x·y) by independent draws of the features, a head each."""
    dim = len(x)
    scaled = dim**0.25 * np.stack([x, y, -x])  # `performer` divides q·k by √dim
    q = np.broadcast_to(scaled[:1], (1, draws, 1, dim))
    k = np.broadcast_to(scaled[1:], (1, draws, 2, dim))
    v = np.zeros((1, draws, 2, dim))
    v[:, :, 0] = 1
    weight = product.apply(variant, (q, k, v), "--seed", str(seed))[0, :, 0, 0]
    return math.exp(-float(x @ x)) * weight / (1 - weight)


def squared_errors(
    product: Product, variant: str, dim: int, length: float, angle: float, small: bool
) -> Iterator[dict[str, Any]]:
    """Means and mean squared errors of independent batches of estimates of one pair; few if small."""
    calls, batches, draws = (1, 4, 500) if small else (5, 10, 10_000)
    x, y = pair(dim, length, angle)
    for call in range(calls):
        for batch, found in enumerate(np.split(estimates(product, variant, x, y, batches * draws, seed=call), batches)):
            yield {
                "length": length,
                "angle": angle,
                "batch": call * batches + batch,
                "draws": draws,
                "mean": float(found.mean()),
                "squared_error": float(np.square(found - np.exp(x @ y)).mean()),
            }


UNIT_EPSILON = 1e-6  # that the library adds to the square of a row's length, as fla does
DELTA = ("deltanet", "gated_deltanet", "kda")
VARIANTS = ("retention", "gla", "mamba2", *DELTA)
GATED = ("gla", "mamba2", "gated_deltanet", "kda")
WRONG = 0.01  # relative: a form that is off by more has left the range of its type
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Given:
    """What the recurrence reads, [len, dim] and [len, 1], and what `apply` reads to come to it."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    log_decay: np.ndarray  # [len, dim] or [len, 1]
    beta: np.ndarray | None  # [len, 1]: the delta rule
    variant: str = ""
    inputs: tuple[np.ndarray, ...] = ()
    gates: Arrays = field(default_factory=dict)
    weights: Arrays = field(default_factory=dict)

    def rounded(self, kind: str) -> Given:
        names = ("q", "k", "v", "log_decay", "beta")
        arrays = {name: getattr(self, name) for name in names}
        return replace(self, **{n: None if a is None else a.astype(kind) for n, a in arrays.items()})


def drawn(variant: str, length: int, dim: int, rate: float, seed: int) -> Given:
    """Random rows, and gates under which a position multiplies the state by exp(-rate·u), u from
    0.5 to 1.5."""
    rng = np.random.default_rng([seed, length])
    q, k, v = inputs = tuple(rng.normal(size=(3, length, dim)))
    width = dim if variant in ("gla", "kda") else 1
    decay = rate * rng.uniform(0.5, 1.5, size=(length, width))
    gate = np.log(np.expm1(decay))  # softplus(gate) = decay
    strength = rng.normal(size=(length, 1))
    told = Given(q / math.sqrt(dim), k, v, -decay, None, variant, inputs)
    if variant == "retention":
        return _retention(told, length, dim)
    if variant == "gla":
        return replace(told, gates={"decay": -gate})
    zero = {"A_log": np.zeros(1)}  # exp(A_log) is 1
    if variant == "mamba2":
        return replace(told, q=q, v=v * decay, gates={"dt": gate}, weights=zero)
    unit = [x / np.sqrt(np.square(x).sum(axis=1, keepdims=True) + UNIT_EPSILON) for x in (q, k)]
    told = replace(told, q=unit[0] / math.sqrt(dim), k=unit[1], beta=1 / (1 + np.exp(-strength)))
    if variant == "deltanet":
        return replace(told, log_decay=np.zeros((length, 1)), gates={"beta": strength})
    return replace(told, gates={"dt": gate, "beta": strength}, weights=zero)


def _retention(told: Given, length: int, dim: int) -> Given:
    """Of head 0: γ = 1 - 2^-5; rows are rotated, and queries divided by √(d·Σ_j γ^(i-j))."""
    gamma, at = 1 - 2.0**-5, np.arange(length)[:, None]
    angle = at / 10000.0 ** (np.arange(dim // 2) / (dim // 2 - 1))
    sums = np.cumsum(gamma**at, axis=0)

    def turned(x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        out[:, ::2] = x[:, ::2] * np.cos(angle) - x[:, 1::2] * np.sin(angle)
        out[:, 1::2] = x[:, ::2] * np.sin(angle) + x[:, 1::2] * np.cos(angle)
        return out

    q, k, _ = told.inputs
    decay = np.full((length, 1), math.log(gamma))
    return replace(told, q=turned(q) / np.sqrt(dim * sums), k=turned(k), log_decay=decay)


def recurrent(x: Given) -> np.ndarray:
    state = np.zeros((x.k.shape[1], x.v.shape[1]), x.q.dtype)
    out = np.empty_like(x.v)
    decay = np.exp(x.log_decay)
    for t in range(len(x.q)):
        state = decay[t][:, None] * state
        new = x.v[t]
        if x.beta is not None:
            new = x.beta[t] * (new - x.k[t] @ state)
        state = state + np.outer(x.k[t], new)
        out[t] = x.q[t] @ state
    return out


def chunked(x: Given, size: int) -> np.ndarray:
    """Pairs inside a chunk at once, and the state from chunk to chunk. Log-decays are summed inside
    a chunk, and of pairs the differences of these sums are exponentiated: none is above 0."""
    state = np.zeros((x.k.shape[1], x.v.shape[1]), x.q.dtype)
    parts = []
    for start in range(0, len(x.q), size):
        q, k, v, g = (a[start : start + size] for a in (x.q, x.k, x.v, x.log_decay))
        total = np.cumsum(g, axis=0, dtype=g.dtype)
        if x.beta is not None:
            beta = x.beta[start : start + size]
            among = np.eye(len(q), dtype=q.dtype) + beta * np.tril(_pairs(k, k, total), -1)
            v = np.linalg.solve(among, beta * (v - (k * np.exp(total)) @ state))
        parts.append((q * np.exp(total)) @ state + np.tril(_pairs(q, k, total)) @ v)
        last = total[-1]
        state = np.exp(last)[:, None] * state + (k * np.exp(last - total)).T @ v
    return np.concatenate(parts)


def _pairs(x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Σ_c x_ic·y_jc·exp(G_ic - G_jc) for j ≤ i, and anything else for others."""
    if total.shape[1] == 1:
        return (x @ y.T) * np.exp(np.minimum(total - total.T, 0))
    out = np.empty((len(x), len(y)), x.dtype)
    for i, row in enumerate(x):
        out[i] = (y * np.exp(np.minimum(total[i] - total, 0))) @ row
    return out


def divided(x: Given) -> np.ndarray:
    """The parallel form of the decay with queries times, and keys divided by, the products of gates."""
    total = np.cumsum(x.log_decay, axis=0, dtype=x.q.dtype)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.tril((x.q * np.exp(total)) @ (x.k / np.exp(total)).T) @ x.v


def overflow(kind: str, length: int, dim: int) -> float:
    """Minus the logarithm of the product of constant gates over `length` positions from which on
    divided() is wrong."""
    low, high = 1.0, 4096.0
    given = drawn("gla", length, dim, 1.0, 0)
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        one = replace(given, log_decay=np.full((length, 1), -middle / length))
        found, truth = divided(one.rounded(kind)), recurrent(one)
        right = np.isfinite(found).all() and difference(found, truth) < WRONG
        low, high = (middle, high) if right else (low, middle)
    return high


def of_library(product: Product, x: Given, kind: str) -> np.ndarray:
    """The outputs of `apply` for one head, in float32 or in float64."""

    def four(a: np.ndarray) -> np.ndarray:
        return a[None, None].astype(kind)

    gates = {name: four(a) for name, a in x.gates.items()}
    spec = f"{x.variant}[temperature=1]" if x.variant == "gla" else x.variant
    arrays = tuple(four(a) for a in x.inputs)
    return product.apply(spec, arrays, "--causal", gates=gates, weights=x.weights)[0, 0]


def difference(found: np.ndarray, truth: np.ndarray) -> float:
    """The largest of a row, over the root mean square of the true rows' lengths."""
    off = np.linalg.norm(found.astype(float) - truth, axis=1).max()
    return float(off / np.sqrt(np.square(truth).sum(axis=1).mean()))


def projections(rng: np.random.Generator, count: int, length: int, dim: int, correlation: float) -> list[np.ndarray]:
    """`count` random projections [length, dim] of the same tokens, each scaled to unit variance. A
    token is `correlation` times the one before plus noise; all have unit variance."""
    noise = rng.normal(size=(length, dim))
    tokens = noise.copy()
    for t in range(1, length):
        tokens[t] = correlation * tokens[t - 1] + np.sqrt(1 - correlation**2) * noise[t]
    drawn = [tokens @ p for p in rng.normal(size=(count, dim, dim)) / np.sqrt(dim)]
    return [x / x.std() for x in drawn]
