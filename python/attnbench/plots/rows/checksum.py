"""Tells a line of rows that was changed after it was written: its field `checksum` is FNV-1a over what
else the line says, with sorted keys, as harness/store/canonical.cc has it. Lines of early versions have none."""

from __future__ import annotations

import json
from typing import Any

FIELD = "checksum"
CHANGED = "the line was changed after it was written: its checksum does not match"


def checksum_fault(row: dict[str, Any]) -> str:
    """Returns what is wrong, "" for nothing."""
    said = row.get(FIELD)
    return "" if FIELD not in row or said == hash_of({k: v for k, v in row.items() if k != FIELD}) else CHANGED


def hash_of(value: Any) -> str:
    text = json.dumps(_canonical(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hash_of_bytes(text.encode())


def hash_of_bytes(content: bytes) -> str:
    """FNV-1a of 64 bits, as harness/store/canonical.cc has it."""
    found = 0xCBF29CE484222325
    for byte in content:
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}"


def _canonical(value: Any) -> Any:
    """64.0 and 64 are one number; other numbers have their shortest text."""
    if isinstance(value, dict):
        return {k: _canonical(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_canonical(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e16 else value
