"""Mixers of the families synthetic and other scores as a careful PyTorch user writes them: fnet, gmlp,
aft, gau, mega. A mixer reads v, one head of the full width."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_convolutions import convolved
from .torch_parts import later, strips
from .torch_states import filter_of

ROWS = 256  # queries at once


def fnet(v: Tensor) -> Tensor:
    return torch.fft.fft2(v).real


def gmlp(
    v: Tensor, in_bias: Tensor, gain: Tensor, shift: Tensor, spatial: Tensor, spatial_bias: Tensor,
    out: Tensor, out_bias: Tensor, causal: bool = False, **weights: Tensor,
) -> Tensor:  # fmt: skip
    """`in` is a word of Python's."""
    residual, gate = F.gelu(F.linear(v, weights["in"].mT, in_bias)).chunk(2, dim=-1)
    gate = F.layer_norm(gate, gain.shape, gain, shift)
    gate = (spatial.tril() if causal else spatial) @ gate + spatial_bias
    return F.linear(residual * gate, out.mT, out_bias)


def aft(
    q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, kind: str,
    causal: bool = False,
) -> Tensor:  # fmt: skip
    """All heads and channels share the weights of pairs, so that one product serves them all. The
    maxima, of a row of pairs and of a channel of keys, cancel."""
    assert kind == "full"
    batch, heads, length, dim = k.shape
    grown = (k - k.detach().amax(2, keepdim=True)).exp()
    both = torch.stack([grown * v, grown], dim=1).permute(0, 3, 1, 2, 4)  # [batch, len, 2, ..]
    both = both.reshape(batch, length, -1)
    found = []
    for rows, keys in strips(length, ROWS, causal):
        bias = left[rows] @ right[keys].mT
        if causal:
            bias = bias.masked_fill(later(bias, rows.start), -torch.inf)
        weights = (bias - bias.detach().amax(-1, keepdim=True)).exp()
        found.append(weights @ both[:, keys])
    sums, total = torch.cat(found, dim=1).view(batch, length, 2, heads, dim).unbind(2)
    return torch.sigmoid(q) * (sums / total).transpose(1, 2)


def gau(
    v: Tensor, gate: Tensor, value: Tensor, base: Tensor, query_scale: Tensor, query_shift: Tensor,
    key_scale: Tensor, key_shift: Tensor, out: Tensor, causal: bool = False,
) -> Tensor:  # fmt: skip
    z = F.silu(v @ base)
    queries, keys = z * query_scale + query_shift, z * key_scale + key_shift
    mixed = squared_relu(queries, keys, F.silu(v @ value), causal)
    return (mixed * F.silu(v @ gate)) @ out


def squared_relu(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """relu(q·k / visible keys)²·v, in strips of queries."""
    length = q.shape[2]
    counts = torch.arange(1, length + 1).unsqueeze(-1) if causal else length
    q, found = q / counts, []
    for rows, keys in strips(length, ROWS, causal):
        weights = F.relu(q[:, :, rows] @ k[:, :, keys].mT).square()
        found.append((weights.tril(rows.start) if causal else weights) @ v[:, :, keys])
    return torch.cat(found, dim=2)


def averages(
    x: Tensor, step: Tensor, damping: Tensor, input: Tensor, output: Tensor
) -> Tensor:
    """The filter of the damped moving averages, [len, width]."""
    share = torch.sigmoid(step)
    log_pole = torch.log1p(-share * torch.sigmoid(damping))
    return filter_of(log_pole, x.shape[2], share * input * output * step.shape[0] ** -0.5)


def mega(
    v: Tensor, step: Tensor, damping: Tensor, input: Tensor, output: Tensor, skip: Tensor,
    base: Tensor, base_bias: Tensor, query_scale: Tensor, query_shift: Tensor, key_scale: Tensor,
    key_shift: Tensor, value: Tensor, value_bias: Tensor, reset: Tensor, reset_bias: Tensor,
    update: Tensor, update_bias: Tensor, candidate: Tensor, candidate_bias: Tensor, out: Tensor,
    causal: bool = False, **reverse: Tensor,
) -> Tensor:  # fmt: skip
    """The averages as a convolution, as the paper's code; where the future is visible one filter holds
    both directions."""
    filter = averages(v, step, damping, input, output)
    if not causal:
        names = ("step", "damping", "input", "output")
        back = averages(v, *(reverse[f"reverse_{name}"] for name in names))
        both = filter[:1] + back[:1]  # of the position itself
        filter = torch.cat([back[1:].flip(0), both, filter[1:]])
    e = F.silu(convolved(v, filter, skip, causal))

    def through(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.linear(x, weight.mT, bias)

    z = F.silu(through(e, base, base_bias))
    mixed = F.scaled_dot_product_attention(
        z * query_scale + query_shift, z * key_scale + key_shift,
        F.silu(through(v, value, value_bias)), is_causal=causal,
    )  # fmt: skip
    mixed = F.silu(through(e, reset, reset_bias)) * mixed
    found = F.silu(through(e, candidate, candidate_bias) + mixed @ out)
    return torch.lerp(v, found, torch.sigmoid(through(e, update, update_bias)))


VARIANTS = {made.__name__: made for made in (fnet, gmlp, aft, gau, mega)}
