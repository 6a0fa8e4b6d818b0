"""What kvpress keeps: its presses as they are, and with what differs from ours left out or put in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from kvpress import DecodingPress, KnormPress, ObservedAttentionPress, PrefillDecodingPress, SnapKVPress, StreamingLLMPress, TOVAPress
from kvpress.presses.scorer_press import ScorerPress
from kvpress.utils import compute_n_kept
from transformers import DynamicCache

from .compared import Choices
from .inputs import Inputs

logging.getLogger("kvpress").setLevel(logging.ERROR)  # it warns of a ratio beside a decoding press, which is meant here
Made = Callable[[int], ScorerPress]  # of a budget


class InOrder(ScorerPress):
    """What is kept stays in the order of positions, where kvpress leaves it in that of the scores."""

    def compress(self, module: Any, hidden_states: Any, keys: Any, values: Any, attentions: Any, kwargs: Any) -> Any:
        if self.compression_ratio == 0:
            return keys, values
        scores = self.score(module, hidden_states, keys, values, attentions, kwargs)
        count = compute_n_kept(keys.shape[2], self.compression_ratio)
        self.kept = scores.topk(count, -1).indices.sort(-1).values
        every = self.kept[..., None].expand(-1, -1, -1, keys.shape[3])
        return keys.gather(2, every), values.gather(2, every)


class Streaming(InOrder, StreamingLLMPress):
    pass


class Evictable(TOVAPress):
    """The last position may go too."""

    def score(self, module: Any, hidden_states: Any, keys: Any, values: Any, attentions: Any, kwargs: Any) -> torch.Tensor:
        return attentions[:, :, -1].mean(1, keepdim=True).repeat(1, keys.shape[1], 1)


class Summed(InOrder, ObservedAttentionPress):
    """Sums over all queries so far, in place of means over those of this call; the last half stays."""

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget, self.sums = budget, None

    def score(self, module: Any, hidden_states: Any, keys: Any, values: Any, attentions: Any, kwargs: Any) -> torch.Tensor:
        means = super().score(module, hidden_states, keys, values, attentions, kwargs)
        self.fresh = means * torch.arange(keys.shape[2], 0, -1)
        if self.sums is not None:
            self.fresh[..., : self.sums.shape[-1]] += self.sums
        kept = self.fresh.clone()
        if self.budget > 1:
            kept[..., -(self.budget // 2) :] = torch.inf
        return kept

    def compress(self, *args: Any) -> Any:
        found = super().compress(*args)
        self.sums = self.fresh.gather(-1, self.kept)
        return found


def window_of(budget: int) -> int:
    return min(32, (budget + 1) // 2)


AS_IT_IS: dict[str, Made] = {
    "sinks": lambda _: StreamingLLMPress(),
    "h2o": lambda _: ObservedAttentionPress(),
    "tova": lambda _: TOVAPress(),
    "snapkv": lambda _: SnapKVPress(),
    "norm": lambda _: KnormPress(),
}
CHANGED: dict[str, Made] = {
    "sinks": lambda _: Streaming(),
    "h2o": Summed,
    "tova": lambda _: Evictable(),
    "snapkv": lambda budget: SnapKVPress(window_size=window_of(budget)),
}


def held(press: Any, x: Inputs, prompt: int, steps: int) -> Choices:
    cache, found = DynamicCache(), []
    with torch.no_grad(), press(x.model):
        x.feed(cache, 0, prompt)
        for i in range(prompt, prompt + steps):
            found.append(x.positions(cache.layers[0].keys))
            if i + 1 < prompt + steps:
                x.feed(cache, i, i + 1)
    return found


def of_prompt(made: Made, x: Inputs, prompt: int, budget: int) -> Choices:
    press = made(budget)
    press.compression_ratio = 1 - (budget + 0.5) / prompt  # it keeps the whole part of (1 - ratio) · positions
    return held(press, x, prompt, 1)


def of_steps(made: Made, x: Inputs, prompt: int, budget: int, steps: int) -> Choices:
    press = made(budget)
    press.compression_ratio = 1 - (budget + 0.5) / prompt
    both = PrefillDecodingPress(press, DecodingPress(press, compression_interval=1, target_size=budget))
    return held(both, x, prompt, steps)
