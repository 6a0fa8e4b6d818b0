"""What attention packages of PyPI pass and fail of check(), as a table in Markdown: docs/python_packages.md.

Each class here feeds q, k and v to a package's own attention and adds no mathematics. Run it in an environment that has the
packages beside torch: PYTHONPATH=build/python/package .venv-python/bin/python python/packages/table.py
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import torch
from linformer import LinformerSelfAttention
from local_attention import LocalAttention
from nystrom_attention import NystromAttention
from performer_pytorch import FastAttention

import attnbench


def side_by_side(*tensors: torch.Tensor) -> torch.Tensor:
    """[batch, heads, len, head_dim] of each -> [batch, len, tensors · heads · head_dim]."""
    return torch.cat([t.transpose(1, 2).flatten(2) for t in tensors], -1)


def apart(x: torch.Tensor, heads: int) -> torch.Tensor:
    """[batch, len, heads · head_dim] -> [batch, heads, len, head_dim]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2).contiguous()


def fix(linear: torch.nn.Linear, weight: torch.Tensor) -> None:
    """Makes a projection of a layer the selection `weight`, which is not learned."""
    with torch.no_grad():
        linear.weight.copy_(weight)
        if linear.bias is not None:
            linear.bias.zero_()
    linear.requires_grad_(False)


class Performer(torch.nn.Module):
    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.inner = FastAttention(head_dim, nb_features=64, causal=causal)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any) -> torch.Tensor:
        return self.inner(q, k, v)


class Local(torch.nn.Module):
    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.inner = LocalAttention(8, causal=causal, autopad=True)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any) -> torch.Tensor:
        return self.inner(q, k, v).reshape(q.shape)


class Linformer(torch.nn.Module):
    """The layer projects one x; here x holds q, k and v side by side, and the projections select."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.heads, width = heads, heads * head_dim
        self.inner = LinformerSelfAttention(3 * width, max_len, k=16, heads=heads, dim_head=head_dim)
        q, k, v = torch.eye(3 * width).split(width)
        fix(self.inner.to_q, q)
        fix(self.inner.to_k, k)
        fix(self.inner.to_v, v)
        fix(self.inner.to_out, q.T)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any) -> torch.Tensor:
        out = self.inner(side_by_side(q, k, v))
        return apart(out[..., : q.shape[1] * q.shape[3]], self.heads)


class Nystrom(torch.nn.Module):
    """As Linformer; without the convolution that the layer adds to attention."""

    def __init__(self, *, heads: int, head_dim: int, max_len: int, causal: bool) -> None:
        super().__init__()
        self.heads, width = heads, heads * head_dim
        self.inner = NystromAttention(3 * width, head_dim, heads, num_landmarks=8, residual=False)
        fix(self.inner.to_qkv, torch.eye(3 * width))
        fix(self.inner.to_out[0], torch.eye(3 * width)[:, :width])

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any) -> torch.Tensor:
        out = self.inner(side_by_side(q, k, v))
        return apart(out[..., : q.shape[1] * q.shape[3]], self.heads)


PACKAGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "performer-pytorch": (Performer, {"causal": True, "random": True, "permutable": True, "convex": True}),
    "linformer": (Linformer, {"fixed_length": True}),
    "local-attention": (Local, {"causal": True, "convex": True}),
    "nystrom-attention": (Nystrom, {}),
}


def lines() -> Iterator[str]:
    """Of the quick checks; those in full take a quarter of an hour."""
    yield from ["| package | promises | passed | red: what the check says |", "|---|---|---|---|"]
    for package, (made, promises) in PACKAGES.items():
        with contextlib.redirect_stdout(io.StringIO()):  # one of them prints that it has no CUDA
            report = attnbench.check(made, name=package, quick=True, **promises)
        passed = sum(r.outcome == "passed" for r in report)
        red = "; ".join(f"`{r.check}`: {r.detail}" for r in report.failed) or "none"
        said = ", ".join(f"`{p}`" for p in promises) or "none"
        yield f"| {package} {version(package)} | {said} | {passed} | {red} |"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
