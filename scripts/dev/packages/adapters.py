"""Attention packages of PyPI as classes that attnbench.check() takes: the package's own attention is fed q, k and v, and no
mathematics is added.

NaN in padding becomes 0: the checks fill padding with it, and no package promises that much. Sizes are small, so that the
lengths of the checks hold several windows, buckets, blocks and landmarks.
"""

from __future__ import annotations

import torch
from entmax import entmax15
from h_transformer_1d.h_transformer_1d import CausalHAttention1D, HAttention1D
from linear_attention_transformer.linear_attention_transformer import SelfAttention as LinearSelfAttention
from linformer import LinformerSelfAttention
from local_attention import LocalAttention
from memory_compressed_attention import MemoryCompressedAttention
from nystrom_attention import NystromAttention
from performer_pytorch import FastAttention
from reformer_pytorch import LSHAttention
from routing_transformer.routing_transformer import KmeansAttention
from sinkhorn_transformer.sinkhorn_transformer import SinkhornAttention, SinkhornCausalAttention
from x_transformers.attend import Attend

Tensor = torch.Tensor


def valid_keys(mask: Tensor | None) -> Tensor | None:
    """bool [batch, kv_len] of a mask [batch, 1, q_len, kv_len]: keys that some query sees."""
    return None if mask is None else mask.any(2)[:, 0]


def side_by_side(*tensors: Tensor) -> Tensor:
    """[batch, heads, len, head_dim] of each -> [batch, len, tensors · heads · head_dim]."""
    return torch.cat([torch.nan_to_num(t).transpose(1, 2).flatten(2) for t in tensors], -1)


def apart(x: Tensor, like: Tensor) -> Tensor:
    """The first channels of [batch, len, channels] -> the shape of `like`, [batch, heads, len, head_dim]."""
    heads, head_dim = like.shape[1], like.shape[3]
    return x[..., : heads * head_dim].unflatten(-1, (heads, head_dim)).transpose(1, 2)


def fix(linear: torch.nn.Linear, weight: Tensor) -> None:
    """Makes a projection the selection `weight` [out, in], which is not learned."""
    with torch.no_grad():
        linear.weight.copy_(weight)
        if linear.bias is not None:
            linear.bias.zero_()
    linear.requires_grad_(False)


def without_padding(out: Tensor, mask: Tensor | None) -> Tensor:
    """`out` with 0 at positions that are padding, whose queries these packages leave open."""
    return out if mask is None else torch.where(valid_keys(mask)[:, None, :, None], out, 0)


def padded(multiple: int, mask: Tensor | None, *tensors: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Tensors [batch, heads, len, head_dim] with zeros up to a multiple, and which keys are none of these, [batch, len]."""
    batch, _, length, _ = tensors[0].shape
    valid = valid_keys(mask)
    valid = torch.ones(batch, length, dtype=torch.bool) if valid is None else valid
    more = -length % multiple
    pad = torch.nn.functional.pad
    return pad(valid, (0, more)), [pad(torch.nan_to_num(t), (0, 0, 0, more)) for t in tensors]


class Performer(torch.nn.Module):
    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.inner = FastAttention(head_dim, nb_features=64, causal=causal)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return self.inner(q, k, v)


class Local(torch.nn.Module):
    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.inner = LocalAttention(8, causal=causal, autopad=True)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        out = self.inner(q, torch.nan_to_num(k), torch.nan_to_num(v), mask=valid_keys(mask))
        return without_padding(out, mask)


class Reformer(torch.nn.Module):
    """Queries are keys too: k is not read. Padded to two buckets, as the package's Autopadder does."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.inner = LSHAttention(bucket_size=4, n_hashes=2, causal=causal)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        valid, (qk, values) = padded(8, mask, q, v)
        valid = valid.repeat_interleave(q.shape[1], 0)
        out, _, _ = self.inner(qk.flatten(0, 1), values.flatten(0, 1), input_mask=valid)
        return without_padding(out.unflatten(0, q.shape[:2])[:, :, : q.shape[2]], mask)


class Routing(torch.nn.Module):
    """The centroids are as drawn, like learned ones: without that, the first call chooses them among its inputs."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        clusters = max(1, max_len // 8)
        self.inner = KmeansAttention(clusters, 8, heads, head_dim, causal=causal).eval()
        self.inner.kmeans.initted.fill_(True)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        valid = valid_keys(mask)
        out, _ = self.inner(q, torch.nan_to_num(k), torch.nan_to_num(v), query_mask=valid, key_mask=valid)
        return without_padding(out, mask)


class Sinkhorn(torch.nn.Module):
    """Padded to whole buckets, as the package's Autopadder does."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        made = SinkhornCausalAttention if causal else SinkhornAttention
        self.inner = made(4, heads * head_dim, head_dim, heads, max_len + -max_len % 4)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        valid, (queries, keys, values) = padded(4, mask, q, k, v)
        out = self.inner(queries, keys, values, q_mask=valid, kv_mask=valid)
        return without_padding(out[:, :, : q.shape[2]], mask)


class XTransformers(torch.nn.Module):
    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.inner = Attend(heads=heads, causal=causal)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        valid = valid_keys(mask)
        out, _ = self.inner(q, torch.nan_to_num(k), torch.nan_to_num(v), mask=valid)
        return out


class Entmax(torch.nn.Module):
    """The package has the function alone: it stands where softmax attention has its softmax."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        k, v = torch.nan_to_num(k), torch.nan_to_num(v)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if mask is None:
            return entmax15(scores) @ v
        seen = mask | ~mask.any(-1, keepdim=True)  # a query that sees no key: all, and 0 below
        weights = entmax15(scores.masked_fill(~seen, -torch.inf))
        return torch.where(mask.any(-1, keepdim=True), weights, 0) @ v


class Linformer(torch.nn.Module):
    """The layer projects x and a context; here they hold q, and k and v side by side, and the projections select."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        width = heads * head_dim
        self.inner = LinformerSelfAttention(2 * width, max_len, k=16, heads=heads, dim_head=head_dim)
        first, second = torch.eye(2 * width).split(width)
        for linear, weight in (("to_q", first), ("to_k", first), ("to_v", second), ("to_out", first.T)):
            fix(getattr(self.inner, linear), weight)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return apart(self.inner(side_by_side(q, q), context=side_by_side(k, v)), q)


class OneInput(torch.nn.Module):
    """A layer that reads q, k and v from one x, where they stand side by side."""

    inner: torch.nn.Module
    mask_name = "mask"

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        out = self.inner(side_by_side(q, k, v), **{self.mask_name: valid_keys(mask)})
        return without_padding(apart(out, q), mask)


class LinearTransformer(OneInput):
    mask_name = "input_mask"

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        width = heads * head_dim
        self.inner = LinearSelfAttention(3 * width, heads, causal=causal, dim_head=head_dim)
        q, k, v = torch.eye(3 * width).split(width)
        for linear, weight in (("to_q", q), ("to_k", k), ("to_v", v), ("to_out", q.T)):
            fix(getattr(self.inner, linear), weight)


class Nystrom(OneInput):
    """Without the convolution that the layer adds to attention."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        width = heads * head_dim
        self.inner = NystromAttention(3 * width, head_dim, heads, num_landmarks=8, residual=False)
        fix(self.inner.to_qkv, torch.eye(3 * width))
        fix(self.inner.to_out[0], torch.eye(3 * width)[:, :width])


class Hierarchical(torch.nn.Module):
    """q, k and v as in OneInput, padded to four blocks of 2, the fewest that the layer takes."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        width = heads * head_dim
        size = {"heads": heads, "dim_head": head_dim, "block_size": 2}
        longest = max(8, 1 << (max_len - 1).bit_length())  # the causal layer takes a power of two
        made = CausalHAttention1D(3 * width, max_seq_len=longest, **size) if causal else HAttention1D(3 * width, **size)
        self.inner = made
        fix(made.to_qkv, torch.eye(3 * width))
        fix(made.to_out, torch.eye(3 * width)[:, :width])

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        valid, all_padded = padded(8, mask, q, k, v)
        out = apart(self.inner(side_by_side(*all_padded), mask=valid), q)
        return without_padding(out[:, :, : q.shape[2]], mask)


class MemoryCompressed(OneInput):
    """The layer is as wide as x: of its 3 · head_dim channels, each head uses the first head_dim."""

    mask_name = "input_mask"

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        wide = 3 * heads * head_dim
        self.inner = MemoryCompressedAttention(wide, heads, causal)
        of_heads = torch.eye(heads * head_dim).unflatten(0, (heads, head_dim))
        spread = torch.cat([of_heads, torch.zeros(heads, 2 * head_dim, heads * head_dim)], 1).flatten(0, 1)
        fix(self.inner.to_qkv, torch.block_diag(spread, spread, spread))
        fix(self.inner.to_out, torch.cat([spread.T, torch.zeros(wide - heads * head_dim, wide)]))


# What each promises: what its arguments and its paper offer.
PACKAGES = {
    "performer-pytorch": (Performer, {"causal": True, "permutable": True, "convex": True}),
    "linformer": (Linformer, {"cross": True, "fixed_length": True}),
    "local-attention": (Local, {"causal": True, "padding": True, "convex": True}),
    "reformer-pytorch": (
        Reformer, {"causal": True, "padding": True, "convex": True, "random": True, "reads": "q"}),  # fmt: skip
    "nystrom-attention": (Nystrom, {"padding": True}),
    "linear-attention-transformer": (LinearTransformer, {"causal": True, "padding": True, "permutable": True}),
    "routing-transformer": (Routing, {"causal": True, "padding": True, "fixed_length": True}),
    "sinkhorn-transformer": (Sinkhorn, {"causal": True, "padding": True, "fixed_length": True}),
    "h-transformer-1d": (
        Hierarchical, {"causal": True, "padding": True, "convex": True, "fixed_length": True}),  # fmt: skip
    "memory-compressed-attention": (MemoryCompressed, {"causal": True, "padding": True}),
    "x-transformers": (
        XTransformers,
        {"exact": True, "causal": True, "cross": True, "padding": True, "convex": True, "permutable": True},
    ),
    "entmax": (Entmax, {"causal": True, "cross": True, "padding": True, "convex": True, "permutable": True}),
}
