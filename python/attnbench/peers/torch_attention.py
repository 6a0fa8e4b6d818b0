"""The variants as a careful PyTorch user would write them: vectorised, n x n only where that is
the variant's mathematics. Those of other families are in the other torch_*.py.

q, k, v are [batch, heads, len, head_dim] with one length for all; weights are named as by
`attnbench info NAME`. A variant is a function, or a class that prepares what is the same for every
call outside the clock."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .choices import buckets_of, hash_shape
from .torch_parts import cut, joined, later, like, padded, strips, unit
from .torch_patterns import bias_of, unblocked

LAST_RESORT = -1e5  # a query's logit with itself: it counts only where there is no other key


def reformer(
    q: Tensor, v: Tensor, rotations: Tensor, rounds: int, chunk: int, causal: bool = False
) -> Tensor:
    """Each round sorts the positions by bucket; a chunk of sorted queries meets its own keys and
    those of the chunk before, of the same bucket. A key that several rounds show counts once.
    Queries are the keys, at length one. Causal, a query sees the last `chunk` earlier members."""
    n, dim = q.shape[2:]
    keys = unit(q, 1e-6 * dim)
    with torch.no_grad():
        order, code = sorted_rounds(q, rotations, chunk, causal)
        place = order.argsort(dim=-1)  # of each position: [batch, heads, rounds, len]
        shown, times = visible_pairs(code, order, chunk, causal)
        bias = -times.clamp(min=1).log()
        bias = bias.masked_fill_(~shown, -torch.inf)
        itself = torch.eye(chunk, 2 * chunk, dtype=torch.bool).roll(chunk, dims=1)

    def chunks(x: Tensor) -> Tensor:  # -> [batch, heads, rounds, chunks, chunk, head_dim]
        taken = x.unsqueeze(2).expand(-1, -1, rounds, -1, -1).gather(3, like(order, x))
        return padded(taken, -n % chunk).unflatten(3, (-1, chunk))

    logits = chunks(q) @ with_before(chunks(keys)).mT + bias
    logits = logits.masked_fill(itself, LAST_RESORT)
    most = logits.detach().amax(-1, keepdim=True)
    weights = torch.exp(logits - most)
    total = weights.sum(-1, keepdim=True)
    out = weights @ with_before(chunks(v)) / total
    out, total = (
        x.flatten(3, 4)[:, :, :, :n].gather(3, like(place, x))
        for x in (out, total.log() + most)
    )
    return (out * total.softmax(2)).sum(2)


def with_before(x: Tensor) -> Tensor:
    """Each chunk behind the one before it; before the first there are zeros."""
    before = F.pad(x[:, :, :, :-1], (0, 0, 0, 0, 1, 0))
    return torch.cat([before, x], dim=4)


def sorted_rounds(
    q: Tensor, rotations: Tensor, chunk: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """The positions in the order of their buckets, and a code of each position, both [batch, heads,
    rounds, len]. A query sees the keys whose code is 0 or 1 below its own; causal, 1 to `chunk`."""
    n = q.shape[2]
    first, second = hash_shape(buckets_of(n, chunk))
    scores = torch.einsum("bhnd,hrkd->bhrnk", q, rotations)

    def half(x: Tensor) -> Tensor:
        return torch.cat([x, -x], dim=-1).argmax(-1)

    bucket = half(scores[..., :first])
    if second:
        bucket = bucket * 2 * second + half(scores[..., first:])
    order = (bucket * n + torch.arange(n)).argsort(dim=-1)
    rank = order.argsort(dim=-1)
    code = rank + 2 * n * bucket if causal else rank // chunk + 2 * bucket
    return order, code.int()


def visible_pairs(
    code: Tensor, order: Tensor, chunk: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """Of the pairs that meet in a round, [batch, heads, rounds, chunks, chunk, 2 * chunk]: whether
    it shows them, and how many rounds do."""
    rounds = code.shape[2]
    far = torch.iinfo(torch.int32).max // 4
    times, own = None, []
    for other in range(rounds):
        there = code[:, :, other : other + 1].expand_as(order).gather(3, order)
        rest = -there.shape[-1] % chunk
        queries = F.pad(there, (0, rest), value=-far).unflatten(-1, (-1, chunk))
        keys = F.pad(there, (chunk, rest), value=far).unflatten(-1, (-1, chunk))
        keys = torch.cat([keys[:, :, :, :-1], keys[:, :, :, 1:]], dim=-1)
        apart = queries.unsqueeze(-1) - keys.unsqueeze(-2)
        near = (apart > 0) & (apart <= chunk) if causal else (apart >> 1) == 0
        own.append(near[:, :, other])
        times = near.float() if times is None else times.add_(near)
    return torch.stack(own, dim=2), times


def sinkhorn(
    q: Tensor, k: Tensor, v: Tensor, sort: Tensor, block: int, iterations: int,
    temperature: float = 0.75,
) -> Tensor:  # fmt: skip
    """Block scores, balanced in logarithms; each block of queries meets its own keys and the block
    that is sorted to it, a mixture of all blocks."""
    n = q.shape[2]
    rest = -n % block
    rows, keys, values = (cut(x, block) for x in (q, k, v))
    scores = F.relu(rows.sum(3)) @ sort / temperature  # [batch, heads, blocks, blocks]
    for _ in range(iterations):
        scores = scores - scores.logsumexp(-2, keepdim=True)
        scores = scores - scores.logsumexp(-1, keepdim=True)
    weights = scores.exp()
    whole = torch.ones(block)
    if rest:  # of rows that the last block lacks the other blocks' mixture is normalised
        whole = whole.masked_fill(torch.arange(block) >= block - rest, 0)
        whole = 1 - weights[..., -1:] * (1 - whole)  # [batch, heads, blocks, block]
    whole = whole.unsqueeze(-1)

    def sorted_and_own(x: Tensor) -> Tensor:  # [batch, heads, blocks, 2 * block, head_dim]
        mixed = (weights @ x.flatten(3)).view_as(x) / whole
        return torch.cat([mixed, x], dim=3).flatten(0, 1)

    bias = None
    if rest:
        seen = torch.ones(scores.shape[-1], 1, 2 * block, dtype=torch.bool)
        seen[-1, :, 2 * block - rest :] = False
        bias = bias_of(seen).expand(-1, -1, block, -1)
    out = F.scaled_dot_product_attention(
        rows.flatten(0, 1), sorted_and_own(keys), sorted_and_own(values), attn_mask=bias
    )
    return unblocked(out, q)


class recurrent:
    """torch.nn.LSTM or GRU. Their second bias is frozen at zero, but for the GRU's candidate."""

    def __init__(self, length: int, causal: bool, cell: str) -> None:
        self.cell = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.module: nn.RNNBase | None = None

    def __call__(
        self, v: Tensor, input: Tensor, bias: Tensor, state: Tensor,
        candidate_bias: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        width = v.shape[3]
        if self.module is None:
            self.module = self.cell(width, width, batch_first=True)
        second = torch.zeros_like(bias)
        if candidate_bias is not None:
            second = torch.cat([second[: 2 * width], candidate_bias])
        weights = {"weight_ih": input, "weight_hh": state, "bias_ih": bias, "bias_hh": second}
        named: dict[str, Any] = {f"{name}_l0": weight for name, weight in weights.items()}
        return torch.func.functional_call(self.module, named, v[:, 0])[0].unsqueeze(1)


def conv(v: Tensor, weight: Tensor, bias: Tensor, kernel: int, causal: bool = False) -> Tensor:
    before = kernel - 1 if causal else kernel // 2
    return convolved(v[:, 0], weight, bias, before, kernel - 1 - before).unsqueeze(1)


def convolved(x: Tensor, weight: Tensor, bias: Tensor, before: int, after: int) -> Tensor:
    """[batch, len, in] -> [batch, len, out]; weight [out, in, kernel]."""
    return F.conv1d(F.pad(x, (0, 0, before, after)).mT, weight, bias).mT


def window_mlp(
    v: Tensor, hidden: Tensor, hidden_bias: Tensor, output: Tensor, output_bias: Tensor,
    window: int, causal: bool = False,
) -> Tensor:  # fmt: skip
    inner = convolved(v[:, 0], hidden, hidden_bias, window, 0 if causal else window).tanh()
    return F.linear(inner, output.squeeze(-1), output_bias).unsqueeze(1)


def mean(v: Tensor, causal: bool = False) -> Tensor:
    if causal:
        return v.cumsum(2) / torch.arange(1, v.shape[2] + 1).unsqueeze(-1)
    return v.mean(2, keepdim=True).expand_as(v).contiguous()  # a row for each position, as ours


ROWS = 128  # queries of relu at once
AT_ONCE = 1 << 20  # tanh of additive at once: 4 MB


def relu(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """relu(q·k/√d) over the number of visible keys; a causal chunk of queries skips later keys."""
    n = q.shape[2]
    q = q * q.shape[3] ** -0.5
    out = []
    for rows, keys in strips(n, ROWS, causal):
        weights = F.relu(q[:, :, rows] @ k[:, :, keys].mT)
        out.append((weights.tril(rows.start) if causal else weights) @ v[:, :, keys])
    counts = torch.arange(1, n + 1).unsqueeze(-1) if causal else n
    return torch.cat(out, dim=2) / counts


def additive(
    q: Tensor, k: Tensor, v: Tensor, W_q: Tensor, W_k: Tensor, w: Tensor, causal: bool = False
) -> Tensor:
    """softmax(w·tanh(W_q·q + W_k·k)), in chunks of queries; training makes each chunk again, for
    n x n x units numbers do not fit."""
    batch, heads, n, _ = q.shape
    queries, keys, w = q @ W_q, k @ W_k, w[:, None, :, None]  # w [heads, 1, units, 1]
    chunk = max(1, AT_ONCE // (batch * heads * n * queries.shape[3]))

    def answer(rows: Tensor, keys: Tensor, w: Tensor, v: Tensor, start: int) -> Tensor:
        hidden = torch.tanh(rows.unsqueeze(3) + keys.unsqueeze(2))
        logits = (hidden @ w).squeeze(-1)  # [batch, heads, chunk, keys]
        if causal:
            logits = logits.masked_fill(later(logits, start), -torch.inf)
        return logits.softmax(-1) @ v

    out = []
    for rows, seen in strips(n, chunk, causal):
        inputs = (queries[:, :, rows], keys[:, :, seen], w, v[:, :, seen], rows.start)
        if torch.is_grad_enabled():
            out.append(checkpoint(answer, *inputs, use_reentrant=False))
        else:
            out.append(answer(*inputs))
    return torch.cat(out, dim=2)


def synthesizer(q: Tensor, v: Tensor, keys: Tensor, kind: str, causal: bool = False) -> Tensor:
    """Dense: logits relu(q)·W without a scale, W a row for each position."""
    assert kind == "dense"
    keys = keys.expand(q.shape[0], -1, -1, -1)
    return F.scaled_dot_product_attention(F.relu(q), keys, v, scale=1.0, is_causal=causal)


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
    """phi_q (phi_k^T v) / phi_q (phi_k^T 1)."""
    out = kernel_sums(phi_q, phi_k, v, causal)
    return out[..., :-1] / out[..., -1:]


def kernel_sums(phi_q: Tensor, phi_k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """phi_q (phi_k^T [v 1]): what a column of ones beside v gives is the divisor."""
    v = F.pad(v, (0, 1), value=1.0)
    return causal_sums(phi_q, phi_k, v) if causal else phi_q @ (phi_k.mT @ v)


def causal_sums(phi_q: Tensor, phi_k: Tensor, v: Tensor) -> Tensor:
    """Row i of phi_q times the sum of phi_k^T v over j <= i, by sums over chunks."""
    length = v.shape[2]
    phi_q, phi_k, v = (cut(x) for x in (phi_q, phi_k, v))
    sums = phi_k.mT @ v  # of one chunk: [batch, heads, chunks, features, head_dim + 1]
    before = F.pad(sums[:, :, :-1].cumsum(2), (0, 0, 0, 0, 1, 0))  # no sum minus its last term
    out = phi_q @ before + (phi_q @ phi_k.mT).tril() @ v
    return joined(out, length)


VARIANTS = {
    made.__name__: made
    for made in (
        full, linformer, performer, linear, relu, additive, synthesizer, sinkhorn, reformer, recurrent,
        conv, window_mlp, mean,
    )
}  # fmt: skip
