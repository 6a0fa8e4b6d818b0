"""Low-rank attention in PyTorch: learned or pooled rows between queries and keys.

q, k, v are [batch, heads, len, head_dim] with one length for all; weights are named as by
`attnbench info NAME`. `mla` and `induced` read the layer's input, which is v with its heads side by
side, and make their projections themselves."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_attention import causal_sums
from .torch_parts import cut, heads_of, rows_of, strips, turned
from .torch_patterns import bias_of

ROWS = 256  # queries of a causal call at once: later blocks of keys are then not read


def memory_compressed(
    q: Tensor, k: Tensor, v: Tensor, compress_k: Tensor, compress_v: Tensor, bias_v: Tensor,
    bias_k: Tensor, null_k: Tensor, null_v: Tensor, stride: int, causal: bool = False,
) -> Tensor:  # fmt: skip
    """`stride` rows side by side times one matrix, behind a learned row that all queries see."""
    n = q.shape[2]

    def compressed(x: Tensor, weight: Tensor, bias: Tensor, null: Tensor) -> Tensor:
        rows = cut(x, stride).flatten(3)
        made = rows @ weight.flatten(1, 2) + bias.unsqueeze(1)
        return torch.cat([null.unsqueeze(1).expand(len(x), -1, -1, -1), made], dim=2)

    keys = compressed(k, compress_k, bias_k, null_k)
    values = compressed(v, compress_v, bias_v, null_v)
    if not causal:
        return F.scaled_dot_product_attention(q, keys, values)
    out, bias = [], ended_bias(n, stride)
    for rows, past in strips(n, ROWS, causal):
        seen = 1 + past.stop // stride
        out.append(
            F.scaled_dot_product_attention(
                q[:, :, rows], keys[:, :, :seen], values[:, :, :seen],
                attn_mask=bias[:, :, rows, :seen],
            )
        )  # fmt: skip
    return torch.cat(out, dim=2)


@lru_cache(maxsize=1)
@torch.inference_mode(False)
def ended_bias(length: int, stride: int) -> Tensor:
    """[1, 1, len, 1 + blocks]: the first row, and the blocks that have ended."""
    last = torch.arange(-(-length // stride) + 1) * stride - 1
    return bias_of(last <= torch.arange(length).unsqueeze(1)).unsqueeze(0)


def segment_means(x: Tensor, count: int) -> Tensor:
    """[batch, heads, len, head_dim] -> [batch, heads, count, head_dim]; the sizes of segments
    differ by one at most."""
    n = x.shape[2]
    if n % count == 0:
        return x.unflatten(2, (count, -1)).mean(3)
    borders = [i * n // count for i in range(count + 1)]
    sizes = torch.tensor([end - start for start, end in zip(borders, borders[1:])])
    segment = torch.arange(count).repeat_interleave(sizes)
    sums = x.new_zeros(*x.shape[:2], count, x.shape[3]).index_add(2, segment, x)
    return sums / sizes.unsqueeze(1)


def nystrom(q: Tensor, k: Tensor, v: Tensor, landmarks: int, iterations: int) -> Tensor:
    """softmax(q k~) pinv(softmax(q~ k~)) softmax(q~ k) v, from the right. The iteration starts from
    each matrix's own norm; its rows sum to one, so that one norm is enough."""
    count = min(landmarks, q.shape[2])
    of_q, of_k = segment_means(q, count), segment_means(k, count)
    weights = (of_q * q.shape[3] ** -0.5 @ of_k.mT).softmax(-1)
    inverse = weights.mT / weights.sum(-2, keepdim=True).amax(-1, keepdim=True)
    unit = torch.eye(count)
    for _ in range(iterations):
        product = weights @ inverse
        inner = 15 * unit - product @ (7 * unit - product)
        inverse = inverse @ (13 * unit - product @ inner) / 4
    values = inverse @ F.scaled_dot_product_attention(of_q, k, v)
    return F.scaled_dot_product_attention(q, of_k, values)


def latent(
    q: Tensor, k: Tensor, v: Tensor, latents: Tensor, layer0_q: Tensor, layer0_k: Tensor,
    layer0_v: Tensor, layers: int,
) -> Tensor:  # fmt: skip
    """Learned rows read the sequence, attend to each other with a residual, and are read."""
    assert layers == 1
    z = F.scaled_dot_product_attention(latents.expand(len(k), -1, -1, -1), k, v)
    z = z + F.scaled_dot_product_attention(z @ layer0_q, z @ layer0_k, z @ layer0_v)
    return F.scaled_dot_product_attention(q, z, z)


def luna(q: Tensor, k: Tensor, v: Tensor, latents: Tensor, causal: bool = False) -> Tensor:
    """Learned rows pack keys and values with the same weights; queries read what is packed. Causal,
    a softplus to the base 2 weighs keys, and what is packed is a mean over the positions so far."""
    scale = q.shape[3] ** -0.5
    scores = latents * scale @ k.mT  # [batch, heads, latents, len]
    if not causal:
        weights = scores.softmax(-1)
        return F.scaled_dot_product_attention(q, weights @ k, weights @ v)
    weights = F.softplus(scores.mT * math.log(2)) / math.log(2)  # [batch, heads, len, latents]
    counts = torch.arange(1, q.shape[2] + 1).unsqueeze(1)
    answers = (causal_sums(q * scale, k, weights) / counts).softmax(-1)
    return causal_sums(answers, weights, v) / counts


def induced(v: Tensor, points: Tensor, **weights: Tensor) -> Tensor:
    """Learned points attend to the set, then the set attends to them."""
    x, heads = rows_of(v), v.shape[1]

    def block(name: str, of: Tensor, to: Tensor) -> Tensor:
        w = {key.removeprefix(f"{name}_"): weight for key, weight in weights.items()}
        projected = F.linear(of, w["q"].mT, w["q_bias"])
        values = F.linear(to, w["v"].mT, w["v_bias"])
        parts = (heads_of(part, heads) for part in (projected, to @ w["k"], values))
        read = F.scaled_dot_product_attention(*parts, scale=x.shape[2] ** -0.5)
        rows = projected + rows_of(read)
        return rows + F.relu(F.linear(rows, w["out"].mT, w["out_bias"]))

    summary = block("summarise", points.expand(len(x), -1, -1), x)
    return heads_of(block("answer", x, summary), heads)


class mla:
    """Keys and values of all heads from one latent a position, beside one rotated key. The table of
    angles is prepared once."""

    def __init__(self, length: int, causal: bool, latent: int, rotary: int) -> None:
        self.causal, self.sizes = causal, (latent, rotary)
        turns = 10000.0 ** (-torch.arange(0, rotary, 2) / rotary)
        angles = torch.arange(length).double().unsqueeze(1) * turns.double()
        self.turn = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)

    def __call__(
        self, v: Tensor, down: Tensor, gain: Tensor, up_k: Tensor, up_v: Tensor, query: Tensor,
        out: Tensor,
    ) -> Tensor:  # fmt: skip
        heads, dim = v.shape[1], v.shape[3]
        x = rows_of(v)
        latent, turning = (x @ down).split(self.sizes, dim=-1)
        latent = F.rms_norm(latent, gain.shape, gain, eps=1e-6)
        plain, to_turn = heads_of(x @ query, heads).split((dim, self.sizes[1]), dim=-1)
        q = torch.cat([plain, turned(to_turn, self.turn)], dim=-1)
        shared = turned(turning, self.turn).unsqueeze(1).expand(-1, heads, -1, -1)
        k = torch.cat([heads_of(latent @ up_k, heads), shared], dim=-1)
        # The fused kernel wants values as wide as keys.
        values = F.pad(heads_of(latent @ up_v, heads), (0, self.sizes[1]))
        mixed = F.scaled_dot_product_attention(q, k, values, is_causal=self.causal)
        return heads_of(rows_of(mixed[..., :dim]) @ out, heads)


def oracle_rank(q: Tensor, k: Tensor, v: Tensor, rank: int) -> Tensor:
    """The softmax weights cut to their largest singular values, in double as ours."""
    weights = (q.double() * q.shape[3] ** -0.5 @ k.double().mT).softmax(-1)
    left, values, right = torch.linalg.svd(weights)
    read = values[..., :rank, None] * (right[..., :rank, :] @ v.double())
    return (left[..., :rank] @ read).float()


VARIANTS = {
    made.__name__: made
    for made in (memory_compressed, nystrom, latent, luna, induced, mla, oracle_rank)
}
