"""The training step of harness/model in PyTorch: the same encoder, initial weights and AdamW."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def read(path: str) -> Tensor:
    return torch.from_numpy(np.load(path))


class Layer(nn.Module):
    """Attention and a GELU feed-forward; the three input projections are one product."""

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.hidden = nn.Linear(width, feed_forward)
        self.output = nn.Linear(feed_forward, width)

    def forward(self, x: Tensor) -> Tensor:  # [batch, len, width]
        q, k, v = (
            self.qkv(self.attention_norm(x))
            .unflatten(-1, (3, self.heads, -1))
            .permute(2, 0, 3, 1, 4)
        )  # [batch, heads, len, head_dim] each
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(attended)
        return x + self.output(F.gelu(self.hidden(self.feed_forward_norm(x))))


class Encoder(nn.Module):
    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__()
        width = request["width"]
        self.tokens = nn.Embedding(request["vocab"], width)
        self.positions = nn.Parameter(torch.empty(request["length"], width))
        shape = (width, request["heads"], request["feed_forward"])
        self.layers = nn.ModuleList(Layer(*shape) for _ in range(request["layers"]))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, request["classes"])

    def forward(self, tokens: Tensor) -> Tensor:  # [batch, len] -> [batch, classes]
        x = self.tokens(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))

    @torch.no_grad()
    def views(self) -> dict[str, Tensor]:
        """The weights by attnbench's names, turned as there, for x·W; writing to one changes it."""

        def linear(module: nn.Linear, name: str) -> dict[str, Tensor]:
            return {name: module.weight.T, f"{name}_bias": module.bias}

        def norm(module: nn.LayerNorm, name: str) -> dict[str, Tensor]:
            return {f"{name}.gain": module.weight, f"{name}.bias": module.bias}

        found = {"input.tokens": self.tokens.weight, "input.positions": self.positions}
        for i, layer in enumerate(self.layers):
            at = f"layers.{i}."
            projections = zip("qkv", layer.qkv.weight.chunk(3), strict=True)
            found |= {f"{at}W_{name}": weight.T for name, weight in projections}
            found |= {
                **{f"{at}W_o": layer.out.weight.T},
                **norm(layer.attention_norm, at + "attention_norm"),
                **norm(layer.feed_forward_norm, at + "feed_forward_norm"),
                **linear(layer.hidden, at + "feed_forward.hidden"),
                **linear(layer.output, at + "feed_forward.output"),
            }
        return {**found, **norm(self.norm, "norm"), **linear(self.head, "head")}

    @torch.no_grad()
    def load(self, folder: str) -> None:
        """Copies attnbench's initial weights."""
        for name, view in self.views().items():
            view.copy_(read(f"{folder}/{name}.npy"))

    @torch.no_grad()
    def write(self, folder: str) -> None:
        for name, view in self.views().items():
            np.save(f"{folder}/{name}.npy", view.detach().numpy())


class Training:
    """Forward, loss, backward, clipping and AdamW on one batch again and again."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.tokens = read(request["tokens"]).long()
        self.targets = read(request["targets"]).long()
        self.model = Encoder(request)
        self.model.load(request["folder"])
        self.clip = request["clip"]
        matrices = [p for p in self.model.parameters() if p.ndim >= 2]
        vectors = [p for p in self.model.parameters() if p.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
            lr=request["learning_rate"],
            betas=(request["beta1"], request["beta2"]),
            eps=request["epsilon"],
            weight_decay=request["weight_decay"],
            fused=True,
        )

    def step(self) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(self.tokens), self.targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss.item()

    def write(self, folder: str) -> None:
        """NAME.npy of each weight, as it is now."""
        self.model.write(folder)
