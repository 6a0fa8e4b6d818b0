"""Other scores than the dot product's softmax, as a careful PyTorch user would write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

ROWS = 128  # queries of relu at once
AT_ONCE = 1 << 20  # tanh of additive at once: 4 MB


def relu(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """relu(q·k/√d) over the number of visible keys; a causal chunk of queries skips later keys."""
    n = q.shape[2]
    q = q * q.shape[3] ** -0.5
    out = []
    for start in range(0, n, ROWS):
        end = min(start + ROWS, n) if causal else n
        rows = q[:, :, start : start + ROWS]
        weights = F.relu(rows @ k[:, :, :end].mT)
        out.append((weights.tril(start) if causal else weights) @ v[:, :, :end])
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
            hidden_keys = torch.ones(logits.shape[2:], dtype=torch.bool).triu(start + 1)
            logits = logits.masked_fill(hidden_keys, -torch.inf)
        return logits.softmax(-1) @ v

    out = []
    for start in range(0, n, chunk):
        end = min(start + chunk, n) if causal else n
        inputs = (queries[:, :, start : start + chunk], keys[:, :, :end], w, v[:, :, :end], start)
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
