"""attnbench board FOLDER -o SITE: static pages from archives of `attnbench submit`. Exit 0 written, 2 wrong usage, 4 no archive that can be
read, 6 a folder that cannot be read or written."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from attnbench.bundles.archive import SUFFIX
from attnbench.plots.command import Parser

MADE = ".attnbench-board"  # says that a folder is a site of this verb, which it may replace


def main(words: list[str]) -> int:
    parser = Parser("board", "Writes static pages from a folder of archives of 'submit'. They need no network and no server. Prints the path of the first.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help=f"it holds NAME{SUFFIX}, and NAME.verified.json of 'verify --json' where there is one")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="SITE", help="the folder of the pages; a board that is there is replaced whole")
    parser.add_argument("--signers", type=Path, metavar="FILE", help="keys to trust, as ssh's allowed_signers lists them")
    given = parser.parse_args(words)
    folder, site = given.folder, Path(os.path.realpath(given.output))
    if not folder.is_dir():
        parser.stop(2, f"'{folder}' is no folder; name one that holds archives of 'submit', NAME{SUFFIX}")
    if given.signers and not given.signers.is_file():
        parser.stop(2, f"--signers {given.signers}: is no file; name one in the form of ssh's allowed_signers")
    if site.exists() and not (site / MADE).is_file():
        parser.stop(2, f"'{given.output}' exists and is no board; name another folder for the pages")
    if site in (folder.resolve(), *folder.resolve().parents):
        parser.stop(2, f"'{given.output}' holds the archives; name another folder for the pages")

    from .pages import pages_of  # scipy.stats takes over a second to load
    from .submissions import read_folder

    try:
        submissions, left_out = read_folder(folder, given.signers)
    except OSError as error:
        parser.stop(6, f"{folder}: cannot be read: {error.strerror}")
    pages, left_out = pages_of(submissions, left_out)
    for one in left_out:
        print(f"board: {one.file}: left out: {one.reason}", file=sys.stderr)
    if not pages:
        parser.stop(4, f"'{folder}' holds no archive that can be read; 'attnbench submit ROWS -o NAME{SUFFIX}' makes one")
    try:
        write_site(site, pages)
    except OSError as error:
        parser.stop(6, f"{given.output}: cannot be written: {error.strerror}")
    parser.tell(str(given.output / "index.html"))
    return 0


def write_site(site: Path, pages: dict[str, str]) -> None:
    """Writes all pages beside `site` and then moves them there: a full disk leaves the old site. Raises OSError."""
    site.parent.mkdir(parents=True, exist_ok=True)
    beside, old = (site.with_name(f".{site.name}.{what}.{os.getpid()}") for what in ("new", "old"))
    try:
        for name, text in sorted({**pages, MADE: ""}.items()):
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if site.exists():
            site.replace(old)
        try:
            beside.replace(site)
        except OSError:
            if old.exists():
                old.replace(site)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
