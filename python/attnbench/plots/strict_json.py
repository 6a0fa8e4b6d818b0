"""Strict JSON: a line is an object without NaN, infinities or a key that appears twice."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


def parse_object(line: bytes) -> dict[str, Any]:
    """Returns the object, or raises a ValueError that says what is wrong."""
    try:
        row = json.loads(
            line.decode("utf-8-sig"),
            parse_constant=_constant,
            parse_float=_number,
            object_pairs_hook=_pairs,
        )
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except json.JSONDecodeError as error:
        cut = "a truncated line?" if error.pos >= len(line) - 1 else f"column {error.colno}"
        raise ValueError(f"not JSON: {error.msg} ({cut})") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not strict JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"a row is a JSON object, not {type(row).__name__}")
    return row


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _constant(text)


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in items}) < len(items):
        raise ValueError("a key appears twice")
    return dict(items)
