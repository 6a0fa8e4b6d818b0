"""The training of harness/train once more, in torch alone: the Transformer, AdamW and its schedule,
from the same initial weights and over the same batches. Slow and plain; for tests."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import torch
from torch.nn import functional as F

from attnbench import _core
from attnbench._torch_callees import visible_pairs

Attention = Callable[..., torch.Tensor]


class Twin:
    """A model of label tasks: pre- or post-norm layers, learned or no positions, no dropout."""

    def __init__(self, key: dict, causal: bool, attention: Attention) -> None:
        self.start = _core.TrainingStart(json.dumps({"do": "measure", "key": key}))
        self.settings, self.causal, self.attention = key["training"], causal, attention
        found = self.start.weights()
        assert all(learned for _, learned in found.values())
        self.weights = {n: torch.tensor(a, requires_grad=True) for n, (a, _) in found.items()}

    def logits(self, batch: dict) -> torch.Tensor:
        w = self.weights
        lengths = batch["lengths"].tolist()
        x = w["input.tokens"][torch.tensor(batch["tokens"]).long()]
        if "input.positions" in w:
            x = x + w["input.positions"][: x.shape[1]]
        padded = min(lengths) < x.shape[1]
        for i in range(self.settings["layers"]):
            x = self._layer(x, lengths if padded else None, f"layers.{i}.")
        if "norm.gain" in w:
            x = self._norm(x, "norm")
        if x.shape[:2] != torch.Size(batch["targets"].shape):  # a label a sequence
            kept = torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None]
            x = (x * kept[..., None]).sum(1) / kept.sum(1, keepdim=True)
        return x @ w["head"] + w["head_bias"]

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], self.weights[name + ".gain"], self.weights[name + ".bias"])

    def _layer(self, x: torch.Tensor, lengths: list[int] | None, name: str) -> torch.Tensor:
        for block, kind in ((self._attended, "attention"), (self._fed, "feed_forward")):
            norm = f"{name}{kind}_norm"
            if self.settings["norm"] == "pre":
                x = x + block(self._norm(x, norm), lengths, name)
            else:
                x = self._norm(x + block(x, lengths, name), norm)
        return x

    def _attended(self, x: torch.Tensor, lengths: list[int] | None, name: str) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.settings["heads"]
        q, k, v = ((x @ self.weights[f"{name}W_{of}"]).view(batch, length, heads, -1).transpose(1, 2)
                   for of in "qkv")  # fmt: skip
        mask = visible_pairs(self.causal, lengths, q, k)
        out = self.attention(q, k, v, mask)
        return out.transpose(1, 2).reshape(batch, length, width) @ self.weights[name + "W_o"]

    def _fed(self, x: torch.Tensor, _: object, name: str) -> torch.Tensor:
        w, name = self.weights, name + "feed_forward."
        hidden = F.gelu(x @ w[name + "hidden"] + w[name + "hidden_bias"])
        return hidden @ w[name + "output"] + w[name + "output_bias"]

    def losses(self, count: int) -> list[float]:
        """Of the first `count` steps."""
        s, tensors = self.settings, list(self.weights.values())
        groups = [{"params": [t for t in tensors if t.dim() >= 2], "weight_decay": s["weight_decay"]},
                  {"params": [t for t in tensors if t.dim() < 2], "weight_decay": 0.0}]  # fmt: skip
        optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-9)
        found = []
        for step in range(count):
            batch = self.start.next()
            logits = self.logits(batch)
            targets = torch.tensor(batch["targets"]).long()
            loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            if s["clip"] > 0:
                torch.nn.utils.clip_grad_norm_(tensors, s["clip"])
            for group in optimizer.param_groups:
                group["lr"] = rate(step, s["steps"], s["warmup"], s["learning_rate"])
            optimizer.step()
            found.append(loss.item())
        return found


def rate(step: int, steps: int, warmup: int, peak: float) -> float:
    """Linear warm-up, then half a cosine to zero."""
    if step < warmup:
        return peak * (step + 1) / warmup
    gone = (step - warmup) / max(1, steps - warmup)
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, gone)))
