"""Small grey pictures that screenshots are compared with. ATTN_RENEW_GOLDEN=1 in the environment of
the test writes them anew: look at them before they are committed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).with_name("golden_pictures")
WIDTH = 240  # pixels: what lies where stays, the shapes of letters, which fonts and versions differ in, do not
BROWSER = FOLDER / "browser"  # the major version of Chromium that drew them; another draws texts and edges its own way
NEAR = 0.15  # of black to white: a difference that counts
# Share of pixels that may differ: a line that is missing makes 0.35 % of a picture. The top of the page is text.
MOST = {"top": 0.05, "speed": 0.003, "accuracy": 0.003}


def drawn_by(version: str) -> bool:
    """Whether the golden pictures are of this version of Chromium; ATTN_RENEW_GOLDEN=1 makes them so."""
    if os.environ.get("ATTN_RENEW_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        BROWSER.write_text(_major(version) + "\n", encoding="utf-8")
    return BROWSER.is_file() and BROWSER.read_text(encoding="utf-8").strip() == _major(version)


def difference(shot: Path) -> float:
    """The share of pixels that differ from the golden picture of this name; 1 where sizes do."""
    small = _small(Image.open(shot))
    golden = FOLDER / shot.name
    if os.environ.get("ATTN_RENEW_GOLDEN"):
        FOLDER.mkdir(exist_ok=True)
        small.save(golden, optimize=True)
    if not golden.is_file():
        raise AssertionError(f"no golden picture {golden.name}; ATTN_RENEW_GOLDEN=1 writes it")
    return compared(small, Image.open(golden))


def compared(one: Image.Image, other: Image.Image) -> float:
    first, second = (np.asarray(picture.convert("L"), dtype=float) / 255 for picture in (one, other))
    if first.shape[1] != second.shape[1] or abs(first.shape[0] - second.shape[0]) > 2:
        return 1.0
    high = min(first.shape[0], second.shape[0])
    return min(_apart(first[:high], second[:high], down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))


def _apart(first: np.ndarray, second: np.ndarray, down: int, right: int) -> float:
    """With the second one moved: a layout may round to the next pixel."""
    moved = np.roll(second, (down, right), axis=(0, 1))
    inner = slice(1, -1), slice(1, -1)
    return float(np.mean(np.abs(first[inner] - moved[inner]) > NEAR))


def _major(version: str) -> str:
    return version.partition(".")[0]


def _small(picture: Image.Image) -> Image.Image:
    size = WIDTH, max(round(picture.height * WIDTH / picture.width), 1)
    return picture.convert("L").resize(size, Image.Resampling.BOX)
