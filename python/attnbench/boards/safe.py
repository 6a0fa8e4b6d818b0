"""Texts of strangers: what a page may show of them. Signs that change how other text is read or shown become visible codes."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

MOST = 2_000  # characters of one text
MOST_MARKS = 3  # accents on one letter: more of them cover the lines above and below
# Controls, formats (of direction, of no width), surrogates, private and unassigned signs, ends of lines and paragraphs.
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
SPACES = re.compile(r"[ \t\r\n\v\f\u00a0]+")
# Letters without ink, which Unicode counts as letters or marks: fillers of Hangul, selectors of variants, the empty Braille cell.
BLANK = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}


def plain(text: str, most: int = MOST) -> str:
    """Returns one line of visible signs: `<U+202E>` stands for a sign that hides or turns text. It is text, not HTML."""
    if text.isascii() and text.isprintable() and len(text) <= most and "  " not in text:
        return text.strip()
    out: list[str] = []
    marks = 0
    for sign in SPACES.sub(" ", text[: 2 * most]).strip():
        is_mark = unicodedata.combining(sign) != 0 or unicodedata.category(sign) in ("Mn", "Me")
        marks = marks + 1 if is_mark else 0
        hides = unicodedata.category(sign) in HIDDEN or ord(sign) in BLANK or marks > MOST_MARKS
        out.append(f"<U+{ord(sign):04X}>" if hides else sign)
    shown = "".join(out)
    return shown if len(shown) <= most and len(text) <= 2 * most else shown[: most - 1] + "\u2026"


def text_of(value: Any, default: str = "") -> str:
    """Returns a text of a place where a stranger may have put anything else."""
    return plain(value) if isinstance(value, str) else default


def slug(title: str) -> str:
    """Returns a name for a page: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
