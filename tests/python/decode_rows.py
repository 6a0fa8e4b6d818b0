"""Synthetic rows of decoding: a cache that grows with the context, states that do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fixture import LENGTHS, NO_CAUSAL, VARIANTS, cell, shape, timed


def decode_cells() -> list[dict[str, Any]]:
    out = []
    for name, params in VARIANTS:
        for n in LENGTHS:
            axes = shape(n, "decode", "attention", True)
            if name == "linformer":
                why = f"cannot decode: it {NO_CAUSAL}"
                out.append(cell("speed", name, params, axes, status="skipped", reason=why))
                continue
            middle = 1.3e-8 * n if name == "full" else 4.3e-6
            out.append(timed(name, params, axes, middle * np.linspace(0.98, 1.02, 5), tokens=1))
            out[-1]["metrics"]["state_bytes"] = 512 * n if name == "full" else 16640
    return out


def decode_memory_cells() -> list[dict[str, Any]]:
    out = []
    for n in LENGTHS:
        figures = dict.fromkeys(("weights_bytes", "activations_bytes", "workspace_bytes"), 64)
        state = {"state_bytes": 512 * n, "peak_bytes": 512 * n + 4096, "rss_peak_bytes": 9**8}
        axes = shape(n, "decode", "attention", True)
        out.append(cell("memory", "full", {"kernel": "tiled"}, axes, metrics=figures | state))
    return out
