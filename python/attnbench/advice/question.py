"""A question: at which length, in which mode, within which memory, for what task."""

from __future__ import annotations

import re
from dataclasses import dataclass

from attnbench.plots.rows.settings import MODE_WORDS, MODES
from attnbench.plots.rows.units import bytes_text

UNITS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}  # as harness/plan/amounts.cc


@dataclass(frozen=True)
class Question:
    length: int  # tokens
    mode: str = "forward"  # of MODES
    causal: bool = False
    memory: int | None = None  # the most that may be used, in bytes
    task: str = ""  # a task or a kind of tasks; "" where the score does not matter

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"'{self.mode}' is no mode; expected {', '.join(MODES[:-1])} or {MODES[-1]}")
        if self.mode == "decode" and not self.causal:  # a token is decoded from those before it
            object.__setattr__(self, "causal", True)

    @property
    def text(self) -> str:
        """Returns `decoding one token at length 8192, causal, within 64 MiB, for recall`."""
        parts = [f"{MODE_WORDS[self.mode]} at length {self.length}", "causal" if self.causal else "not causal"]
        parts += [f"within {bytes_text(self.memory)}"] if self.memory is not None else []
        parts += [f"for {self.task}"] if self.task else []
        return ", ".join(parts)


def length_of(text: str) -> int:
    """Reads a number of tokens. ValueError: one line that names the value."""
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) < 1:
        raise ValueError(f"'{text}' is no length; write a number of tokens such as 8192")
    return int(text)


def bytes_of(text: str) -> int:
    """Reads an amount of memory, `64M` or `1.5G`, in powers of 1024. ValueError: one line that names the value."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([KMGT]?)", text)
    if found is None or len(text) > 24 or not float(found[1]) > 0:
        raise ValueError(f"'{text}' is not an amount of memory; write 64M or 2G")
    if not found[2]:
        raise ValueError(f"'{text}' has no unit; write {text}M or {text}G")
    return int(float(found[1]) * UNITS[found[2]])
