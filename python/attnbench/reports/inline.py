"""Data and scripts within a page: data that cannot end its element, and the hash by which a policy lets one script run."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def in_script(data: Any) -> str:
    """JSON that no text in it can end: HTML sees no tag and no comment, JavaScript the same data."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def script_hash(script: str) -> str:
    """As a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
