"""Planted rows of the entries of scripts/reproduce on times, memory and trainings, R14 to R30: laws that agree, that disagree, and rows
too noisy to say. As cheap as writing the files."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
from attnbench.reproduce.entries import FOLDER, read_entry

from .planted import TEXTBOOK, TILED, Plant, entry_file, plant, records

LENGTHS = (512, 1024, 2048, 4096, 8192)


def r14(folder: Path, kind: str) -> None:
    entry = read_entry(FOLDER / "R14")
    ups, memory = (entry.published[name].values for name in ("speed_up", "memory"))
    rows = plant(kind)
    for scope in ("attention", "model"):
        for form in (TEXTBOOK, TILED):
            rows.time("full", 4000, 1.0, mode="train", scope=scope, **form)
        for name, up in ups.items():
            rows.time(name, 4000, 1 / up, mode="train", scope=scope)
    for name in ups:
        gigabytes = memory[name]
        rows.peak(name, 4000, 1e9 / gigabytes if kind == "disagrees" else 1e9 * gigabytes, mode="train")
    rows.write(folder, "steps", entry_file("R14/steps.toml"))


def r15(folder: Path, kind: str) -> None:
    rows, power = plant(kind), 1 if kind == "disagrees" else 2
    for scope in ("attention", "model"):
        for n in (512, 1024, 2048, 4096, 8192, 16384):
            rows.time("linformer", n, 1e-6 * n, rank=128, scope=scope)
            for form in (TEXTBOOK, TILED):
                rows.time("full", n, 2e-9 * n**power, scope=scope, **form)
    for n in (512, 1024, 2048, 4096, 8192, 16384):
        rows.peak("linformer", n, 600 * n, rank=128)
        rows.peak("full", n, 4 * n * n, **TEXTBOOK)
    rows.write(folder, "saving", entry_file("R15/saving.toml"))


def r16(folder: Path, kind: str) -> None:
    rows, power = Plant(noise=0.3) if kind == "noisy" else plant(kind), 2 if kind == "disagrees" else 1
    rows.both("full", LENGTHS, lambda n: 1e-8 * n * n, lambda n: 4 * n * n, **TEXTBOOK)
    rows.both("linformer", LENGTHS, lambda n: 1e-6 * n**power, lambda n: 4 * 8192 * n / 16, rank=256)
    rows.both("longformer", LENGTHS, lambda n: 1e-6 * n**power, lambda n: 4 * 8192 * n / 22, window=128, global_tokens=0)
    rows.write(folder, "growth", entry_file("R16/growth.toml"))


def r17(folder: Path, kind: str) -> None:
    rows, power = plant(kind), 2 if kind == "disagrees" else 1
    for form in (TEXTBOOK, TILED):
        rows.both("full", LENGTHS, lambda n: 1e-8 * n * n, lambda n: 4 * n * n, mode="train", **form)
    rows.both("reformer", LENGTHS, lambda n: 1e-5 * n**power, lambda n: 900 * n, mode="train", chunk=32)
    rows.both("linear", LENGTHS, lambda n: 1e-6 * n, lambda n: 500 * n, mode="train")
    rows.write(folder, "growth", entry_file("R17/growth.toml"))


def r18(folder: Path, kind: str) -> None:
    rows = plant(kind)
    cache = 1e-10 if kind == "disagrees" else 1e-8  # of a token of the context
    for n in (1, 98, 196, 392, 784, 1536, 3072):
        rows.time("linear", n, 2e-6, mode="decode", causal=True)
        rows.time("full", n, 1e-6 + cache * n, mode="decode", causal=True)
        rows.time("full", n, 1e-9 * n * n + 1e-6 * n, mode="forward", causal=True)
    rows.write(folder, "tokens", entry_file("R18/tokens.toml"))
    search = plant(kind)
    for n in (64, 128, 256):
        search.time("linear", n, 2e-6, mode="decode", causal=True)
        search.time("full", n, 1e-6 + cache * n, mode="decode", causal=True)
    search.write(folder, "crossing", entry_file("R18/crossing.toml"), find=True)


def r19(folder: Path, kind: str) -> None:
    """Exact attention has one curve for all variants, so all lengths are given by the variants'."""
    rows = plant(kind)
    lengths = [32 * 2**i for i in range(9)]
    memory = {"performer": 3000 if kind == "disagrees" else 80, "local": 400}
    speed = {"performer": 600, "local": 1800}
    for n in lengths:
        for form in (TEXTBOOK, TILED):
            rows.time("full", n, 1e-8 * n * n, **form)
            rows.peak("full", n, 10 * n * n, **form)
        for name in speed:
            rows.time(name, n, 1e-8 * n * speed[name])
            rows.peak(name, n, 10 * n * memory[name])
    rows.write(folder, "crossing", entry_file("R19/crossing.toml"), find=True)


def r20(folder: Path, kind: str) -> None:
    for name, linear, performer in (("narrow", 70, 300), ("wide", 140, 600)):
        rows = plant(kind)
        factor = 8 if kind == "disagrees" else 1
        for n in [16 * 2**i for i in range(9)]:
            for form in (TEXTBOOK, TILED):
                rows.time("full", n, 1e-8 * n * n, **form)
            rows.time("linear", n, 1e-8 * n * linear * factor)
            rows.time("performer", n, 1e-8 * n * performer * factor)
        rows.write(folder, name, entry_file(f"R20/{name}.toml"), find=True)


def r23(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    losses = {"full": 1e-4, "linear": 1.0 if kind == "disagrees" else 2e-4, "reformer": 5e-5 if kind == "disagrees" else 0.3}
    for seed in range(3):
        for name, loss in losses.items():
            spread = math.exp(0.02 * rng.normal())
            if (kind, name) == ("noisy", "linear"):
                loss = (0.001, 0.01, 0.2)[seed]
            rows.score(name, "copy", 0.9, seed, loss=loss * spread)
            rows.score(name, "copy", 0.2, seed, loss=9.0, rate=1e-2)  # loses on validation
    rows.write(folder, "copy", entry_file("R23/copy.toml"))


def r24(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    for seed in range(3):
        for rounds in (4, 2, 1):
            scores = {"full": 0.01, "8": 0.99, "4": 0.98, "2": 0.9, "1": 0.8}
            if kind == "disagrees":
                scores["full"] = 0.9
            shift = 0.3 * rng.normal() if kind == "noisy" else 0.002 * rng.normal()
            with_ = [{"params": {"as": "paper", "buckets": int(name == "full"), "chunk": 16, "rounds": 1 if name == "full" else int(name)},
                      "test": min(1.0, max(0.0, score + shift * (name != "8"))), "stderr": 0.01, "reason": None}
                     for name, score in scores.items()]  # fmt: skip
            rows.score("reformer", "copy", 0.9, seed, rounds=rounds, by_params=with_)
    rows.write(folder, "rounds", entry_file("R24/rounds.toml"))


def r26(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    top = {"agrees": 0.25, "disagrees": 0.47, "noisy": 0.37}[kind]
    for seed in range(10):
        there = top + 0.003 * rng.normal()
        shortcuts = {"majority": 0.17, "root operator": 0.2, "root operator, its digits": there}
        rows.score("mean", "listops", 0.1, seed, shortcuts=shortcuts)
    rows.write(folder, "ladder", entry_file("R26/ladder.toml"))


def r27(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    beyond = {"agrees": 0.02, "disagrees": 1.2, "noisy": 0.02}[kind]
    for variant in ("local", "performer"):
        for seed in range(5):
            scattered = kind == "noisy" and variant == "performer"
            itself, near = 0.8 if scattered else 0.01, 0.005 * rng.normal()
            found.append({"variant": variant, "seed": seed, "length": 2000, "paper_from_itself": itself,
                          "code_from_paper": itself + beyond + near})  # fmt: skip
    records(folder, "both", found)


def r28(folder: Path, kind: str) -> None:
    rows, rng, spread = plant(kind), np.random.default_rng(1), 0.3 if kind == "noisy" else 0.01
    far = {"none": 0.6, "sinusoidal": 0.3, "rotary": 0.9 if kind == "disagrees" else 0.4, "learned": None}
    for seed, (positions, score), task in itertools.product(range(3), far.items(), ("copy", "induction")):
        on = [{"params": {"length": 32 * t}, "length": 32 * t, "chance": score and 0.1, "reason": None if score else "it ends",
               "test": score and score / t**0.5 + spread * rng.normal(), "stderr": score and 0.01} for t in (2, 4, 8)]  # fmt: skip
        rows.score("full", task, 0.95, seed, task_params={"length": 32}, training={"positions": positions}, by_task=on)
    rows.write(folder, "lengths", entry_file("R28/lengths.toml"))


def r30(folder: Path, kind: str) -> None:
    rows = plant(kind)
    for seed in range(3):
        shift = 0.05 * (seed - 1) if kind == "noisy" else 0.001 * seed
        rows.score("full", "frames", 0.9, seed)
        rows.score("truncated", "frames", 0.9 + shift, seed, window=18)
        rows.score("truncated", "frames", 0.9 if kind == "disagrees" else 0.7, seed, window=2)
    rows.write(folder, "frames", entry_file("R30/frames.toml"))
    times = plant("agrees")
    for n in (256, 1024, 4096):
        times.time("truncated", n, 1e-7 * n, window=18)
        times.time("full", n, 1e-9 * n * n, **TILED)
    times.write(folder, "cost", entry_file("R30/cost.toml"))
