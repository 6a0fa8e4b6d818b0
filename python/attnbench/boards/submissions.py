"""A folder of archives as the board sees them: what can be read, whoever verified it, and why the rest is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbench.bundles.archive import SUFFIX, Bundle, read_bundle
from attnbench.bundles.container import BundleError
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Rows, RowsError, rows_of

from .safe import plain
from .verdicts import Verdict, signature_words, verdict_of

# A name becomes that of a page and a word of commands: no folder, no hidden file, nothing for a shell.
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}{re.escape(SUFFIX)}")

# Of variants and tasks: no letter of another alphabet that looks like one of another name.
SHOWN = re.compile("[ -~\u00b7]{0,200}")
CELL = re.compile("[0-9a-f]{4,64}")  # a word of commands that readers copy


@dataclass(frozen=True, eq=False)
class Submission:
    """An archive that was read. All texts but those of `rows` are plain, see safe.py.

    Attributes:
        file: The archive's name; `page` is that of its page, without an ending.
        digest: SHA-256 of the archive, hexadecimal.
        signature: Who signed it, as far as keys tell, in words.
        rows: What may be published, see plots/rows/learned.py.
        members: The rows file in the archive that holds each run.
        checksums: Of each line of a cell, by run and cell, as the line says.
        contract: What `attnbench check` said of each variant.
        sources: The files that it brings, and their sizes in bytes.
    """

    file: str
    digest: str
    statement: str
    signature: str
    rows: Rows
    members: dict[str, str]
    checksums: dict[tuple[str, str], str]
    contract: dict[str, str]
    sources: dict[str, int]
    verdict: Verdict

    @property
    def page(self) -> str:
        return self.file.removesuffix(SUFFIX)


@dataclass(frozen=True)
class LeftOut:
    """A file that is on no page, and why. Both are plain."""

    file: str
    reason: str


def read_folder(folder: Path, signers: Path | None = None) -> tuple[list[Submission], list[LeftOut]]:
    """Reads every archive of the folder itself, by name. Raises OSError for a folder that cannot be listed."""
    found: list[Submission] = []
    left_out: list[LeftOut] = []
    seen: dict[str, str] = {}  # by digest and by name without case
    for path in sorted(p for p in folder.iterdir() if p.name.endswith(SUFFIX)):
        shown = plain(path.name, 120)
        try:
            own = _read(path, signers)
            for same in (own.digest, own.file.casefold()):
                if same in seen:
                    raise BundleError(f"it is the archive of '{seen[same]}' again" if same == own.digest
                                      else f"its name differs from '{seen[same]}' in case alone; rename one")  # fmt: skip
            seen |= {own.digest: shown, own.file.casefold(): shown}
            found.append(own)
        except (BundleError, RowsError) as error:
            left_out.append(LeftOut(shown, plain(str(error), 400)))
    return found, left_out


def _read(path: Path, signers: Path | None) -> Submission:
    """Raises BundleError or RowsError."""
    if not NAME.fullmatch(path.name):
        raise BundleError(f"its name has other signs than letters, digits, '.', '_' and '-', or over 100 of them; rename it to NAME{SUFFIX}")
    if path.is_symlink() or not path.is_file():
        raise BundleError("it is a link or no file; put the archive itself here")
    bundle = read_bundle(path)
    rows, members = _rows_of(bundle)
    return guarded(lambda: _submission(path, bundle, rows, members, signers))


def guarded(make: Callable[[], Any]) -> Any:
    """A stranger's rows may have any value in any place that no reader checked: then the archive is left out, not the board."""
    try:
        return make()
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError, ZeroDivisionError) as error:
        raise BundleError(f"its rows have not the form of results/schema.json: {type(error).__name__}: {error}") from None


def _submission(path: Path, bundle: Bundle, rows: Rows, members: dict[str, str], signers: Path | None) -> Submission:
    for line in bundle.cells:
        for what in ("variant", "task"):
            name = (line[what] or {}).get("name", "")
            if not SHOWN.fullmatch(name):
                raise BundleError(f"a {what} has the name '{name}'; names have letters, digits and signs of ASCII")
        if not CELL.fullmatch(line["cell"]):
            raise BundleError(f"a cell has the id '{line['cell'][:60]}', which is no hexadecimal number")
    checksums = {(line["run"], line["cell"]): plain(str(line.get("checksum", ""))) for line in bundle.cells}
    return Submission(
        file=path.name,
        digest=bundle.digest,
        statement=plain(bundle.statement),
        signature=signature_words(bundle, signers),
        rows=published(rows),
        members=members,
        checksums=checksums,
        contract={plain(name): _checks(said) for name, said in bundle.contract.items()},
        sources={name: len(content) for name, content in sorted(bundle.sources.items())},
        verdict=verdict_of(path, bundle, signers),
    )


def _checks(said: Any) -> str:
    """What `attnbench check` said of a variant, in words."""
    lines = said.get("lines") if isinstance(said, dict) else None
    if not isinstance(lines, list):
        return plain(json.dumps(said, sort_keys=True))
    red = [plain(str(line)) for line in lines if str(line).startswith("RED")]
    return f"{plain(str(said.get('level', '')))} checks, {len(lines)} lines, {'; '.join(red) or 'none red'}".strip()


def _rows_of(bundle: Bundle) -> tuple[Rows, dict[str, str]]:
    """The rows, checked as every verb checks them, checksums of lines included; and the member of each run."""
    parts = sorted(bundle.rows.items())
    members = {str(line["run"]): name for name, lines in parts for line in lines if line["kind"] == "run"}
    return guarded(lambda: rows_of((Path(Path(name).name), lines) for name, lines in parts)), members
