"""What the code of the methods' authors keeps, imported from clones of their repositories."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import subprocess
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from .compared import Choices
from .inputs import HEADS, Inputs

PAGE = 16


class Source(NamedTuple):
    repository: str
    commit: str
    file: str


STREAMING = Source("mit-han-lab/streaming-llm", "2e50426", "streaming_llm/kv_cache.py")
H2O = Source("FMInference/H2O", "ac75c2a", "h2o_hf/utils_real_drop/modify_llama.py")
TOVA = Source("schwartz-lab-NLP/TOVA", "9c7d09b", "src/tova_cache.py")
SNAPKV = Source("FasterDecoding/SnapKV", "e216ddc", "snapkv/monkeypatch/snapkv_utils.py")
NORM = Source("alessiodevoto/l2compress", "f93d6ca", "cache.py")
QUEST = Source("mit-han-lab/Quest", "01c1623", "evaluation/quest_attention.py")
QUEST_KERNEL = Source(*QUEST[:2], "quest/tests/test_approx_attention.py")


class Clones:
    """Clones in a folder; what is missing there is fetched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("quest", "quest.utils", "pytest"):  # kernels for GPUs and decorators, which nothing here calls
            sys.modules.setdefault(name, types.ModuleType(name))
        sys.modules["quest"].utils = sys.modules["quest.utils"]  # type: ignore[attr-defined]
        if not hasattr(sys.modules["pytest"], "mark"):
            sys.modules["pytest"].mark = types.SimpleNamespace(parametrize=lambda *_: lambda f: f)  # type: ignore[attr-defined]

    @cache
    def module(self, source: Source) -> Any:
        repository, commit, file = source
        clone = self.folder / repository.split("/")[1]
        if not clone.is_dir():
            subprocess.run(["git", "clone", "-q", f"https://github.com/{repository}", clone], check=True)
            subprocess.run(["git", "-C", clone, "checkout", "-q", commit], check=True)
        head = subprocess.run(["git", "-C", clone, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
        assert head.startswith(commit), f"{clone} is at {head[:7]}; expected {commit}"
        spec = importlib.util.spec_from_file_location(f"clone_{Path(file).stem}", clone / file)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def labels(heads: int, positions: list[list[int]]) -> torch.Tensor:
    """Positions in the place of keys: [1, heads, some, 2], the same number twice."""
    return torch.tensor(positions, dtype=torch.float64)[None, :, :, None].expand(1, heads, -1, 2)


def told(tensor: torch.Tensor) -> list[list[int]]:
    """The positions that labels() wrote."""
    return tensor[0, :, :, 0].long().tolist()


# Reduces labels of what is held, of each head of keys: (labels, weights [1, heads, queries, held]) -> labels.
Reduce = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def kept(reduce: Reduce, x: Inputs, prompt: int, steps: int) -> Choices:
    """After a prompt, and after each of the steps but the last."""
    held = told(reduce(labels(x.kv_heads, [list(range(prompt))] * x.kv_heads), x.prompt_weights(prompt)))
    found = []
    for i in range(prompt, prompt + steps):
        found.append([frozenset(own) for own in held])
        held = [[*own, i] for own in held]
        group = HEADS // x.kv_heads
        weights = torch.stack([x.weights(h, i, held[h // group]) for h in range(HEADS)])[None, :, None]
        held = told(reduce(labels(x.kv_heads, held), weights))
    return found


def sinks(clones: Clones, x: Inputs, budget: int) -> Reduce:
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its sizes
        theirs = clones.module(STREAMING).StartRecentKVCache(start_size=4, recent_size=budget - 4)
    return lambda held, _: theirs([[held, held]])[0][0]


def h2o(clones: Clones, x: Inputs, budget: int) -> Reduce:
    """It has no shared keys: the weights of the query heads that share them are handed over as one sum."""
    with contextlib.redirect_stdout(io.StringIO()):
        theirs = clones.module(H2O).H2OKVCache_LayerWise(hh_size=budget - budget // 2, recent_size=budget // 2)
    return lambda held, weights: theirs((held, held), weights.unflatten(1, (x.kv_heads, -1)).sum(2))[0]


def tova(clones: Clones, x: Inputs, budget: int) -> Reduce:
    reduce = clones.module(TOVA).TOVACache.reduce

    def reduced(held: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        theirs = types.SimpleNamespace(cache_size=budget, key_cache=[held], value_cache=[held])
        reduce(theirs, 0, weights)
        return theirs.key_cache[0]

    return reduced


def norm(clones: Clones, x: Inputs, budget: int) -> Reduce:
    compress = clones.module(NORM).l2_compress

    def reduced(held: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        count = held.shape[2]
        if count <= budget:
            return held
        keys = torch.stack([torch.tensor(x.k[0, g, own]) for g, own in enumerate(told(held))])[None]
        wide = held[..., :1].expand(keys.shape)  # it gathers values as wide as keys
        # It keeps the share rounded up.
        return compress([(keys, wide)], keep_ratio=(budget - 0.5) / count, prune_after=0)[0][1]

    return reduced


REDUCING = {"sinks": (STREAMING, sinks), "h2o": (H2O, h2o), "tova": (TOVA, tova), "norm": (NORM, norm)}


def snapkv(clones: Clones, x: Inputs, prompt: int, budget: int, window: int, as_one: bool) -> Choices:
    """Each query head chooses for itself: keys are repeated before its choice. `as_one`: by the sum of the votes of all that
    share keys. The window is a setting there, and is given ours."""
    module = clones.module(SNAPKV)
    cluster = module.SnapKVCluster(window_size=window, max_capacity_prompt=budget)
    group = HEADS // x.kv_heads
    pool = module.F.avg_pool1d

    def pooled(votes: torch.Tensor, **how: int) -> torch.Tensor:
        return pool(votes.unflatten(1, (-1, group)).sum(2).repeat_interleave(group, 1), **how)

    k, q = (torch.tensor(a[:, :, :prompt]).float() for a in (x.k.repeat(group, 1), x.q))  # it has no mask in double
    values = labels(HEADS, [list(range(prompt))] * HEADS)[..., :1].expand(k.shape)
    with patch.object(module.F, "avg_pool1d", pooled if as_one else pool):
        return [[frozenset(own) for own in told(cluster.update_kv(k, q, values, None, group)[1])]]


def quest(clones: Clones, x: Inputs, i: int, budget: int, own_first: bool) -> list[frozenset[int]]:
    """The evaluation's choice at a step, by query head; `own_first`: of the page of the step as the best one."""
    module = clones.module(QUEST)
    module.apply_rotary_pos_emb = lambda q, k, *_: (q, k)  # both are rotated
    choose = module.local_heavy_hitter_mask

    def with_own(bounds: torch.Tensor, *sizes: int) -> torch.Tensor:
        bounds[..., bounds.shape[-1] - 1] = torch.finfo(bounds.dtype).max
        return choose(bounds, *sizes)

    q, k = torch.tensor(x.q[:, :, i : i + 1]).float(), torch.tensor(x.k[:, :, : i + 1]).float()
    rows = [a.transpose(1, 2).flatten(2) for a in (q, k[:, :, -1:])]
    layer = types.SimpleNamespace(
        layer_id=2, num_heads=HEADS, num_key_value_heads=x.kv_heads, num_key_value_groups=HEADS // x.kv_heads,
        head_dim=k.shape[-1], hidden_size=rows[0].shape[-1], chunk_size=PAGE, token_budget=budget,
        q_proj=lambda _: rows[0], k_proj=lambda _: rows[1], v_proj=lambda _: rows[1], o_proj=lambda out: out,
        rotary_emb=lambda *_: (None, None),
    )  # fmt: skip
    past = (k[:, :, :-1], k[:, :, :-1])
    with patch.object(module, "local_heavy_hitter_mask", with_own if own_first else choose):
        weights = module.forward(layer, rows[0], None, torch.tensor([[i]]), past, output_attentions=True)[1]
    return [frozenset(torch.nonzero(row).flatten().tolist()) for row in weights[0, :, 0]]


def quest_kernel(clones: Clones, x: Inputs, i: int, budget: int) -> list[frozenset[int]]:
    """That of the reference which the authors test their kernels by."""
    q, k = torch.tensor(x.q[0, :, i]).float()[None], torch.tensor(x.k[0, :, : i + 1]).float()
    k = k.repeat_interleave(HEADS // x.kv_heads, 0).transpose(0, 1)
    pages = clones.module(QUEST_KERNEL)._ref_self_approx_attention(q, k, k, PAGE, budget // PAGE)[1]
    if pages is None:
        return [frozenset(range(i + 1))] * HEADS
    read = [[*own.flatten().tolist(), i // PAGE] for own in pages]
    return [frozenset(j for page in own for j in range(page * PAGE, min(i + 1, (page + 1) * PAGE))) for own in read]
