"""attnbench submit ROWS... -o NAME.attnbundle: one archive of rows and of what stands behind them. Exit 0 written, 2 refused, 4 no cell that is ok,
5 a contract check is red, 6 a file that cannot be read or written."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._place import COMMAND
from ..plots.command import Parser
from ..plots.rows.read import parse_object
from .archive import (
    CONTRACT,
    ENDINGS,
    ENVIRONMENT,
    MANIFEST,
    MOST_STATEMENT,
    PROTOCOL,
    ROWS,
    SIGNATURE,
    SOURCES,
    STATEMENT,
    SUFFIX,
    Line,
    about_of,
    is_plain_text,
    json_bytes,
    manifest_of,
    write_archive,
)
from .brought import Brought, brought_by, parts_of, plugin_words
from .consistency import faults_of_rows, first_of_each
from .container import NAME, BundleError, plain
from .private import own_people, private_part, without_folders
from .program import ProgramMissing, checked, own_names, reds, told
from .sandbox import Sandbox
from .signature import sign

CANNOT_BE_SHOWN = """What an archive cannot show: cells that were measured and left out; figures that were made up so that they fit each other (verify
measures a sample of them again); that a C++ source is the one behind the binary that was measured."""


class Refused(Exception):
    """Why there is no archive: an exit code, and lines."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__(*lines)
        self.code, self.lines = code, lines


@dataclass
class Submission:
    """What goes into the archive."""

    rows: dict[str, bytes] = field(default_factory=dict)  # by member
    lines: dict[str, list[Line]] = field(default_factory=dict)
    sources: dict[str, bytes] = field(default_factory=dict)  # by file name
    protocol: dict[str, Any] = field(default_factory=dict)
    contract: dict[str, Any] = field(default_factory=dict)
    brought: Brought = field(default_factory=Brought)

    @property
    def runs(self) -> dict[str, Line]:
        return {line["run"]: line for lines in self.lines.values() for line in lines if line["kind"] == "run"}

    @property
    def cells(self) -> list[Line]:
        return [line for lines in self.lines.values() for line in lines if line["kind"] == "cell"]


def main(arguments: list[str]) -> int:
    parser = Parser("submit", f"Makes one archive of rows and of what stands behind them, for others to verify. {CANNOT_BE_SHOWN}")
    parser.add_argument("rows", nargs="+", type=Path, metavar="ROWS", help="rows files, whole: every line is checked")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar=f"NAME{SUFFIX}", help="the archive")
    parser.add_argument("--plugin", action="append", default=[], metavar="FILE",
                        help="a source of a variant or task that the rows name: FILE.cc, FILE.h or FILE.py; repeatable")  # fmt: skip
    parser.add_argument("--statement", default="", metavar="TEXT", help="what these rows are, in a sentence")
    parser.add_argument("--key", type=Path, metavar="FILE", help="your own ssh key, which signs the archive (ssh-keygen -Y sign)")
    parser.add_argument("--strip", action="store_true", help="leave folders out of the run lines: of the command line and of names of files, nothing else")
    given = parser.parse_args(arguments)
    if given.output.suffix != SUFFIX or not NAME.fullmatch(given.output.name):
        parser.stop(2, f"-o {plain(str(given.output))}: the archive's name ends in {SUFFIX}, and has letters, digits, '.', '_' and '-' alone")
    if not given.output.parent.is_dir():  # before minutes of checks
        parser.stop(6, f"-o {plain(str(given.output))}: cannot be written: '{plain(str(given.output.parent))}' is no folder")
    if given.output.is_dir():
        parser.stop(6, f"-o {plain(str(given.output))}: cannot be written: it is a folder")
    try:
        with tempfile.TemporaryDirectory(prefix="attnbench-submit-", ignore_cleanup_errors=True) as folder:
            parser.tell(_submitted(given, Sandbox(Path(folder), is_fenced=False)))
    except Refused as refused:
        for line in refused.lines:
            print(f"submit: {line}", file=sys.stderr)
        return refused.code
    except BundleError as error:
        parser.stop(6 if isinstance(error, ProgramMissing) else 2, str(error))
    except OSError as error:
        parser.stop(6, f"{error.filename or given.output}: {error.strerror}")
    except KeyboardInterrupt:
        parser.stop(130, "interrupted; nothing was written")
    return 0


def _submitted(given: Any, sandbox: Sandbox) -> str:
    """Makes the archive; what to say of it."""
    found = Submission()
    found.rows = _files(given.rows, ROWS, (".jsonl",))
    found.sources = {name.removeprefix(SOURCES): data for name, data in _files(map(_source_of, given.plugin), SOURCES, ENDINGS).items()}
    people = own_people()
    _refuse_texts(given.statement, found, people)
    names = {f"{ROWS}{path.name}": str(path) for path in given.rows}
    for name, content in found.rows.items():
        found.lines[name] = _parsed(content, names[name])
        if given.strip:
            found.lines[name] = [without_folders(line) if line.get("kind") == "run" else line for line in found.lines[name]]
            found.rows[name] = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found.lines[name]).encode()
    found.protocol = told(sandbox, ["protocol"])
    faults = (f for name, lines in found.lines.items() for f in faults_of_rows(names[name], lines, found.protocol, people))
    if lines := first_of_each(faults):
        raise Refused(2, *lines)
    if not any(cell["status"] == "ok" for cell in found.cells):
        raise Refused(4, f"{', '.join(map(str, given.rows))}: nothing to submit, no cell is ok")
    found.brought = brought_by(found.sources, found.cells, found.runs, *own_names(sandbox))
    _add_contract(found, sandbox)
    return _written(given, found)


def _source_of(text: str) -> Path:
    """The file of --plugin: also of python:FILE.py:NAME, as `run` takes it."""
    file, colon, _ = text.removeprefix("python:").rpartition(".py:")
    return Path(f"{file}.py" if colon and text.startswith("python:") else text.removeprefix("python:"))


def _files(paths: Any, folder: str, endings: tuple[str, ...]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in paths:
        member = f"{folder}{path.name}"
        if path.suffix not in endings or not NAME.fullmatch(member):
            raise BundleError(f"{plain(str(path))}: a name of a file here ends in {', '.join(endings)}, and has letters, digits, '.', '_' and '-' alone")
        if member in found:
            raise BundleError(f"{plain(str(path))}: two files are named {path.name}; rename one")
        found[member] = path.read_bytes()
    return found


def _parsed(content: bytes, name: str) -> list[Line]:
    if not content:
        raise BundleError(f"{name}: it is empty; a rows file begins with a run line")
    lines = []
    for number, raw in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
        try:
            lines.append(parse_object(raw))
        except ValueError as error:
            raise BundleError(f"{name}:{number}: {error}") from None
    return lines


def _refuse_texts(statement: str, found: Submission, people: tuple[str, ...]) -> None:
    if len(statement) > MOST_STATEMENT or not is_plain_text(statement):
        raise BundleError(f"--statement: plain text of at most {MOST_STATEMENT} characters, without control characters")
    if part := private_part(statement, people):
        raise BundleError(f"--statement names '{plain(part)}', a folder, a user or a machine")
    for name, content in found.sources.items():
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise BundleError(f"{name}: no text in UTF-8; name the source of the variant, not what was built of it") from None
        for number, line in enumerate(text.splitlines(), 1):
            part = next((part for word in line.split() if (part := private_part(word.strip("\"'<>(),;"), people)) and not part.startswith("//")), "")
            if part.startswith(("/home", "/root", "/Users", "~")) or part in people:
                raise BundleError(f"{name}:{number} names '{plain(part)}', a folder, a user or a machine")


def _add_contract(found: Submission, sandbox: Sandbox) -> None:
    """Runs the contract checks of the variants that the rows name: in full of those that are brought, the quick ones of attnbench's own."""
    if found.brought.has_cxx:
        print("submit: builds the C++ sources, as verify will", file=sys.stderr)
    plugins = plugin_words(sandbox, found.sources, found.brought)
    for name in sorted({part for cell in found.cells for part in parts_of(cell["variant"]["name"])}):
        level = "full" if name in found.brought.names else "quick"
        found.contract[name] = checked(sandbox, name, plugins, level)
        if red := reds(found.contract[name]["lines"]):
            raise Refused(5, f"{name}: a contract check is red, so that no number of it can be published: {red[0]}")


def _written(given: Any, found: Submission) -> str:
    runs, cells = found.runs, found.cells
    about = about_of((line for lines in found.lines.values() for line in lines), found.protocol)
    members = {
        **found.rows,
        **{f"{SOURCES}{name}": content for name, content in found.sources.items()},
        STATEMENT: (given.statement.strip() + "\n").encode(),
        ENVIRONMENT: json_bytes({run: line["environment"] for run, line in runs.items()}),
        PROTOCOL: json_bytes(found.protocol),
        CONTRACT: json_bytes(found.contract),
    }
    members[MANIFEST] = manifest_of(members, about)
    if given.key:
        with given.key.open("rb"):  # ssh-keygen's own words for a missing file are worse
            members[SIGNATURE] = sign(members[MANIFEST], given.key)
    digest = write_archive(given.output, members).digest
    said = f", {len(cells)} cells of {len(about['variants'])} variants, {'signed' if given.key else 'not signed (--key FILE signs it)'}"
    if about["departs"]:
        said += f"; it departs from {found.protocol['name']} in {', '.join(about['departs'])}, and says so"
    return f"{given.output}: sha256 {digest}{said}\n{COMMAND} verify {given.output}"
