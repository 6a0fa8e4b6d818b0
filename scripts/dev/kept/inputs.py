"""Queries, keys and values that a Llama of one layer with random weights computes, and which positions each step of our decoder
sees on them."""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from .compared import Choices

HEADS, HEAD_DIM = 8, 32
WIDTH = HEADS * HEAD_DIM


def model_of(kv_heads: int) -> LlamaForCausalLM:
    """Weights by which queries and keys are about N(0, 1); in double, so that rounding decides nothing."""
    config = LlamaConfig(
        vocab_size=8, hidden_size=WIDTH, intermediate_size=8, num_hidden_layers=1, num_attention_heads=HEADS,
        num_key_value_heads=kv_heads, head_dim=HEAD_DIM, initializer_range=WIDTH**-0.5, attn_implementation="eager",
    )  # fmt: skip
    torch.manual_seed(kv_heads)
    return LlamaForCausalLM(config).double().eval()


@dataclass
class Inputs:
    model: LlamaForCausalLM
    rows: torch.Tensor  # [1, len, width], what the model reads in place of tokens
    q: np.ndarray  # [1, heads, len, head_dim], rotated
    k: np.ndarray  # [1, kv_heads, len, head_dim], rotated
    v: np.ndarray

    @property
    def kv_heads(self) -> int:
        return self.k.shape[1]

    def until(self, length: int) -> Inputs:
        return dataclasses.replace(self, q=self.q[:, :, :length], k=self.k[:, :, :length], v=self.v[:, :, :length])

    def feed(self, cache: DynamicCache, first: int, last: int) -> None:
        """The model reads rows [first, last)."""
        at = torch.arange(first, last)
        self.model(
            inputs_embeds=self.rows[:, first:last], past_key_values=cache, use_cache=True, cache_position=at, position_ids=at[None]
        )  # fmt: skip

    def weights(self, head: int, i: int, held: list[int]) -> torch.Tensor:
        """Of query `i` of a query head over held positions."""
        keys = self.k[0, head * self.kv_heads // HEADS, held]
        return torch.softmax(torch.tensor(keys @ self.q[0, head, i]) / HEAD_DIM**0.5, 0)

    def prompt_weights(self, prompt: int) -> torch.Tensor:
        """[1, heads, prompt, prompt], causal."""
        keys = np.repeat(self.k[:, :, :prompt], HEADS // self.kv_heads, axis=1)
        logits = torch.tensor(self.q[:, :, :prompt] @ keys.swapaxes(2, 3)) / HEAD_DIM**0.5
        hidden = torch.ones(prompt, prompt, dtype=torch.bool).triu(1)
        return torch.softmax(logits.masked_fill(hidden, -torch.inf), -1)

    def positions(self, keys: torch.Tensor) -> list[frozenset[int]]:
        """Which keys [1, kv_heads, some, head_dim] are, of each head of keys."""
        found = []
        for own, held in zip(self.k[0], keys[0].numpy()):
            distance = np.abs(held[:, None] - own[None]).max(-1)
            assert (distance.min(1) < 1e-9).all(), "a key that the sequence does not have"
            found.append(frozenset(distance.argmin(1).tolist()))
        return found


@torch.no_grad()
def inputs_of(model: LlamaForCausalLM, length: int) -> Inputs:
    rows = torch.randn(1, length, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    read: dict[str, Any] = {}
    attention = model.model.layers[0].self_attn
    hook = attention.register_forward_pre_hook(lambda _, __, given: read.update(given), with_kwargs=True)
    made = Inputs(model, rows, *(np.empty(0),) * 3)
    made.feed(cache := DynamicCache(), 0, length)
    hook.remove()
    q = attention.q_proj(read["hidden_states"]).view(1, length, HEADS, HEAD_DIM).transpose(1, 2)
    made.q = apply_rotary_pos_emb(q, q, *read["position_embeddings"])[0].numpy()
    made.k, made.v = (x.numpy() for x in (cache.layers[0].keys, cache.layers[0].values))
    return made


def ours(
    program: Path, spec: str, x: Inputs, prompt: int, by_query: bool = False, own: bool = False, dtype: str = "float64"
) -> Choices:
    """What each step of our decoder sees, with its `own` position or without; of each head of keys, or of queries."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: f"{folder}/{name}.npy" for name in ("q", "k", "v", "out", "seen")}
        for name in "qkv":
            np.save(files[name], np.ascontiguousarray(getattr(x, name), dtype))
        given = [word for name, file in files.items() for word in (f"--{name}", file)]
        subprocess.run([program, "apply", "-v", spec, "--prompt", str(prompt), *given], check=True, stdout=subprocess.DEVNULL)
        seen = np.load(files["seen"])[0]  # [heads, steps, most]
    rows = seen if by_query else seen[:: HEADS // x.kv_heads]
    return [
        [frozenset(row[row >= 0].tolist()) - (set() if own else {prompt + step}) for row in rows[:, step]]
        for step in range(rows.shape[1])
    ]
