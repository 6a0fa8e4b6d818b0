"""Who else has measured an archive: NAME.verified.json beside NAME.attnbundle, which `attnbench verify --json` prints, and
NAME.verified.json.sig, its signature, where whoever verified it signed (ssh-keygen -Y sign -n attnbench)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnbench.bundles.archive import SUFFIX, Bundle
from attnbench.bundles.container import BundleError
from attnbench.bundles.judging import AGREE, DISAGREE, NEITHER
from attnbench.bundles.signature import check
from attnbench.plots.rows.read import parse_object

from .safe import plain, text_of

ENDING, SIGNATURE = ".verified.json", ".sig"
MOST_BYTES = 1 << 20  # of a verdict, and of its signature
VERIFIED, DISAGREES, NOT_COMPARABLE, UNVERIFIED = "verified", "disagrees", "not comparable", "unverified"
MARKS = {VERIFIED: "", DISAGREES: "\u2260", NOT_COMPARABLE: "\u00b0", UNVERIFIED: "\u00b0"}  # stand behind every number
MEANINGS = {
    "\u00b0": "of an archive that nobody but its submitter has measured, or whose verification compared nothing",
    "\u2260": "another measurement of this archive disagrees",
}
STATES = {AGREE: VERIFIED, DISAGREE: DISAGREES, NEITHER: NOT_COMPARABLE}


@dataclass(frozen=True)
class Verdict:
    """`state` is a key of MARKS; `words` say by whom, or why not; `cells` what came of each cell that was measured anew, by
    its id. All are plain text."""

    state: str
    words: str
    cells: dict[str, str]

    @property
    def mark(self) -> str:
        return MARKS[self.state]


def verdict_of(archive: Path, bundle: Bundle, signers: Path | None) -> Verdict:
    """A verdict that cannot be read, that is of other bytes or whose signature is not its own verifies nothing, and the words
    say so."""
    path = archive.with_name(archive.name.removesuffix(SUFFIX) + ENDING)
    if not path.exists():
        return _unverified(f"nobody but its submitter has measured it: there is no {path.name}")
    try:
        content = _content(path)
        return _judged(parse_object(content), bundle, path.name, _signed(path, content, bundle, signers))
    except (OSError, ValueError, BundleError) as error:
        return _unverified(f"{path.name} counts for nothing: {plain(str(error), 300)}")


def signature_words(bundle: Bundle, signers: Path | None) -> str:
    """Error for a signature of other bytes. A key that `signers` does not name has signed, but nobody vouches for it."""
    if bundle.signature and signers:
        try:
            return plain(check(bundle, signers).words)
        except BundleError:
            pass
    return plain(check(bundle, None).words)


def _unverified(words: str) -> Verdict:
    return Verdict(UNVERIFIED, words, {})


def _content(path: Path) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise ValueError("it is a link or no file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError("it has more than 1 MiB")
    return content


def _signed(path: Path, content: bytes, bundle: Bundle, signers: Path | None) -> str:
    """Who signed the verdict, in words."""
    beside = path.with_name(path.name + SIGNATURE)
    signature = _content(beside).decode("ascii", "replace") if beside.exists() else ""
    return signature_words(replace(bundle, signature=signature, signed=content), signers)


def _judged(found: dict[str, Any], bundle: Bundle, name: str, signed: str) -> Verdict:
    if found.get("verdict") == "refused":
        raise ValueError(f"verify refused the archive: {text_of(found.get('reason'))}")
    if found.get("sha256") != bundle.digest:
        raise ValueError("it is of other bytes than this archive: their SHA-256 differ")
    said = str(found.get("verdict"))
    if said not in STATES:
        raise ValueError(f"its verdict is '{plain(said, 40)}', not one of {', '.join(STATES)}")
    own = {line["cell"] for line in bundle.cells}
    said_of = found.get("cells")
    listed = [c for c in said_of if isinstance(c, dict) and text_of(c.get("cell")) in own] if isinstance(said_of, list) else []
    states = Counter(text_of(c.get("state")) for c in listed)
    if said == AGREE and not states[AGREE]:
        raise ValueError("it says agree, and names no cell of this archive that does")
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    fault = text_of(found.get("fault") or found.get("reason"))
    words = f"{name} says {said}: {counts or 'no cell'} of {len(listed)} measured anew" + (f"; {fault}" if fault else "")
    return Verdict(STATES[said], f"{words}; this verdict is {signed}", {text_of(c.get("cell")): _cell(c) for c in listed})


def _cell(found: dict[str, Any]) -> str:
    return ": ".join(filter(None, (text_of(found.get("state")), text_of(found.get("words")))))
