"""The variants as a careful PyTorch user would write them: vectorised, n x n only where that is
the variant's mathematics. Those of other families are in the other torch_*.py.

q, k, v are [batch, heads, len, head_dim] with one length for all; weights are named as by
`attnbench info NAME`. A variant is a function, or a class that prepares what is the same for every
call outside the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import torch_groups, torch_mixers, torch_patterns, torch_scores, variants
from .torch_patterns import padded

CHUNK = 64  # of causal prefix sums: the fastest of 32, 64, 128 and 256 at length 4096


def full(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """PyTorch's own fused attention."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def linformer(
    q: Tensor, k: Tensor, v: Tensor, projection_k: Tensor, projection_v: Tensor, rank: int
) -> Tensor:
    """Keys and values projected from len to `rank` rows, then exact attention."""
    assert projection_k.shape[1] == rank
    return F.scaled_dot_product_attention(q, projection_k @ k, projection_v @ v)


def performer(
    q: Tensor, k: Tensor, v: Tensor, omega: Tensor, features: int, causal: bool = False
) -> Tensor:
    """Positive random features of the softmax kernel (FAVOR+). Maxima are subtracted before exp,
    of each query's features and over all keys, where they cancel."""
    assert omega.shape[1] == features
    scale = q.shape[3] ** -0.25
    directions = omega.mT * scale  # [heads, head_dim, features]

    def exponent(x: Tensor) -> Tensor:
        return x @ directions - x.square().sum(-1, keepdim=True) * (scale * scale / 2)

    to, of = exponent(q), exponent(k)
    phi_q = torch.exp(to - to.detach().amax(-1, keepdim=True))
    phi_k = torch.exp(of - of.detach().amax((-1, -2), keepdim=True))
    return kernel_attention(phi_q, phi_k, v, causal)


def linear(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """The feature map elu + 1."""
    return kernel_attention(F.elu(q) + 1, F.elu(k) + 1, v, causal)


def kernel_attention(phi_q: Tensor, phi_k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """phi_q (phi_k^T v) / phi_q (phi_k^T 1): a column of ones beside v gives the denominator."""
    v = F.pad(v, (0, 1), value=1.0)
    out = causal_sums(phi_q, phi_k, v) if causal else phi_q @ (phi_k.mT @ v)
    return out[..., :-1] / out[..., -1:]


def causal_sums(phi_q: Tensor, phi_k: Tensor, v: Tensor) -> Tensor:
    """Row i of phi_q times the sum of phi_k^T v over j <= i, by sums over chunks."""
    length = v.shape[2]
    phi_q, phi_k, v = (
        padded(x, -length % CHUNK).unflatten(2, (-1, CHUNK)) for x in (phi_q, phi_k, v)
    )  # [batch, heads, chunks, CHUNK, features or head_dim + 1]
    sums = phi_k.mT @ v  # of one chunk: [batch, heads, chunks, features, head_dim + 1]
    before = F.pad(sums[:, :, :-1].cumsum(2), (0, 0, 0, 0, 1, 0))  # no sum minus its last term
    out = phi_q @ before + (phi_q @ phi_k.mT).tril() @ v
    return out.flatten(2, 3)[:, :, :length]


MODULES = (torch_patterns, torch_scores, torch_groups, torch_mixers)
VARIANTS: dict[str, Callable[..., Any]] = {
    **{made.__name__: made for made in (full, linformer, performer, linear)},
    **{
        name: made
        for module in MODULES
        for name, made in vars(module).items()
        if name in variants.NAMES
    },
}
