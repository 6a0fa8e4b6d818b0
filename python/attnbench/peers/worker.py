"""The other side's child process: one library, answering a JSON request a line.

The protocol is that of `attnbench peer` (harness/cli/peer.cc). Run as `python -m attnbench.peers.worker
NAME`; the parent has limited the cores that this process may use, which libraries look at when they
are imported.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

MODULES = {
    "torch": "in_torch",
    "jax": "in_jax",
    "onnxruntime": "in_onnxruntime",
    "ggml": "in_ggml",
    "flex": "in_flex",
    "compiled": "in_compiled",
}


def timed(request: dict[str, Any], call: Callable[[], object]) -> list[float]:
    """Seconds of each of `repeat` calls, after `warm` calls that are not timed."""
    for _ in range(request.get("warm", 0)):
        call()
    seconds = []
    for _ in range(request.get("repeat", 1)):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


class Worker:
    """`library` makes what is timed: attention(request), cache(request), model(request); and says its version."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.held: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        what = request["do"]
        if what == "hello":
            return self.library.hello()
        if what in ("attention", "cache", "model"):
            self.held = None  # frees what was held before: the largest cases fill the memory
            self.held = getattr(self.library, what)(request)
            return {}
        if what == "write":
            self.held.write(request["folder"])
            return {}
        if what == "step":
            losses: list[float] = []
            seconds = timed(request, lambda: losses.append(self.held.step()))
            return {"seconds": seconds, "losses": losses}
        return {"seconds": timed(request, getattr(self.held, what))}


def main(name: str) -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not reach the parent as a reply
    worker = Worker(importlib.import_module(f"attnbench.peers.{MODULES[name]}"))
    for line in sys.stdin:
        try:
            reply = worker.answer(json.loads(line))
        except Exception as error:
            text = " ".join(str(error).split())
            reply = {"error": f"{type(error).__name__}: {text[:300]}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
