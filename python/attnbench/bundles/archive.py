"""A bundle as data: `read_bundle` opens an archive of `attnbench submit` and runs nothing of it. What it returns has the form that it should
have; whether the figures hold is asked by consistency.py (do they fit each other?) and by `attnbench verify` (are they measured again?)."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..plots.rows.checksum import FIELD, hash_of
from ..plots.rows.read import parse_object
from ..plots.rows.terms import EXACT
from .container import BundleError, need, packed, plain, read_file, unpacked

SCHEMA = "attnbench-bundle/1"
SUFFIX = ".attnbundle"
MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
STATEMENT, ENVIRONMENT, PROTOCOL, CONTRACT = "statement.txt", "environment.json", "protocol.json", "contract.json"
NEEDED = (MANIFEST, STATEMENT, ENVIRONMENT, PROTOCOL, CONTRACT)
ROWS, SOURCES = "rows/", "sources/"
MOST_LINE = 4 << 20  # bytes of a line of rows
MOST_STATEMENT = 2000  # characters
MOST_SOURCE = 1 << 20  # bytes of a source
MOST_LINES = 50_000  # of all rows files; each takes a millisecond to check
MOST_LEVELS = 32  # of lists and objects within each other; rows have 7
PROCESSOR = ("cpu_model", "instruction_set", "kernel_instruction_set")  # what an environment says of it
OF_A_RUN = (*PROCESSOR, "commit", "compiler", "flags", "cores")  # what cannot change while a run goes on
ENDINGS = (".cc", ".h", ".py")  # of sources
Line = dict[str, Any]


@dataclass(frozen=True)
class Bundle:
    """What an archive holds.

    Attributes:
        path: The archive.
        digest: SHA-256 of its bytes, hexadecimal.
        manifest: "schema", "program", "protocol", "departs", "cells", "variants", "members".
        rows: Of each rows file, by its name in the archive, the parsed lines in order: run lines and cells.
        environment: The environment of each run, by the id of the run.
        protocol: "name", "hash" and "definition", as `attnbench protocol --json` prints them.
        contract: What `attnbench check` said of the variants, by name, when the bundle was made.
        statement: What the submitter says, plain text of one or more lines.
        sources: Sources of variants that are not attnbench's own, by their name in the archive.
        signature: The text of the ssh signature of the manifest, "" without one. signature.py says what it is worth.
        signed: The bytes that the signature is of.
    """

    path: Path
    digest: str
    manifest: dict[str, Any]
    rows: dict[str, list[Line]]
    environment: dict[str, dict[str, Any]]
    protocol: dict[str, Any]
    contract: dict[str, Any]
    statement: str
    sources: dict[str, bytes] = field(default_factory=dict)
    signature: str = ""
    signed: bytes = b""

    @property
    def protocol_hash(self) -> str:
        return str(self.protocol["hash"])

    @cached_property
    def runs(self) -> dict[str, Line]:
        """The run lines by id, the last of each."""
        return {line["run"]: line for lines in self.rows.values() for line in lines if line["kind"] == "run"}

    @cached_property
    def cells(self) -> list[Line]:
        """The cells of all rows files; of a cell that a file holds several times, the last row."""
        found: dict[tuple[str, str, str], Line] = {}
        for name, lines in self.rows.items():
            for line in lines:
                if line["kind"] == "cell":
                    found.pop((name, line["run"], line["cell"]), None)
                    found[name, line["run"], line["cell"]] = line
        return list(found.values())

    @cached_property
    def exact_times(self) -> list[Line]:
        """The speed cells of exact attention that are ok."""
        return [c for c in self.cells if c["measure"] == "speed" and c["status"] == "ok" and c["variant"]["name"] == EXACT]


def read_bundle(path: str | Path) -> Bundle:
    """Reads an archive whole and runs nothing of it. Raises BundleError with one line for an archive that is hostile or broken, and its
    subclass UnreadableBundle for a file that cannot be read."""
    return bundle_of(read_file(Path(path)), Path(path))


def bundle_of(data: bytes, path: Path) -> Bundle:
    """The same of the bytes of an archive, which is or will be at `path`."""
    members = unpacked(data)
    for name in NEEDED:
        need(name in members, f"it has no member '{name}'")
    manifest = _object(members[MANIFEST], MANIFEST)
    need(manifest.get("schema") == SCHEMA, f"{MANIFEST}: schema is {plain(repr(manifest.get('schema')))}, not '{SCHEMA}'")
    _check_members(manifest, members)
    texts = {name: content for name, content in members.items() if name.startswith(ROWS)}
    need(bool(texts), "it has no rows")
    number = sum(content.count(b"\n") for content in texts.values())
    need(number <= MOST_LINES, f"its rows have {number} lines; {MOST_LINES} is the most")
    rows = {name: _lines(name, content) for name, content in texts.items()}
    bundle = Bundle(
        path=path,
        digest=hashlib.sha256(data).hexdigest(),
        manifest=manifest,
        rows=rows,
        environment=_object(members[ENVIRONMENT], ENVIRONMENT),
        protocol=_protocol(members[PROTOCOL]),
        contract=_object(members[CONTRACT], CONTRACT),
        statement=_statement(members[STATEMENT]),
        sources={name: content for name, content in members.items() if name.startswith(SOURCES)},
        signature=members.get(SIGNATURE, b"").decode("ascii", "replace"),
        signed=members[MANIFEST],
    )
    _check_agreement(bundle)
    return bundle


def about_of(lines: Iterable[Line], protocol: dict[str, Any]) -> dict[str, Any]:
    """What a manifest says of the rows, which follows from them: programs, protocol, departures, cells by status, variants and their sources."""
    lines = list(lines)
    runs, cells = ([line for line in lines if line["kind"] == kind] for kind in ("run", "cell"))
    variants: dict[str, dict[str, Any]] = {}
    for cell in cells:
        name, source = cell["variant"]["name"], cell.get("source", {}).get("variant")
        of = variants.setdefault(name, {"provided_by": cell.get("provided_by", "attnbench"), "sources": []})
        if source and source not in of["sources"]:
            of["sources"].append(source)
    return {
        "program": sorted({f"{run['environment'].get('version')} {run['environment'].get('commit') or 'unknown'}" for run in runs}),
        "protocol": {"name": protocol["name"], "hash": protocol["hash"]},
        "departs": sorted({name for run in runs for name in run["protocol"]["departs"]}),
        "cells": dict(sorted(Counter(cell["status"] for cell in cells).items())),
        "variants": variants,
    }


def manifest_of(members: dict[str, bytes], about: dict[str, Any]) -> bytes:
    """The manifest of the members. `about` is that of about_of()."""
    listed = {name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in sorted(members.items())}
    return json_bytes({"schema": SCHEMA, **about, "members": listed})


def write_archive(path: Path, members: dict[str, bytes]) -> Bundle:
    """Reads the archive of the members as everybody else will, and only then writes it, beside its place, and moves it there. Raises
    BundleError and OSError."""
    data = packed(members)
    bundle = bundle_of(data, path)
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(path)) from None  # names no file that its reader did not name
    finally:
        part.unlink(missing_ok=True)
    return bundle


def sealed(line: Line) -> Line:
    """The line of rows with the checksum of what else it says."""
    rest = {name: value for name, value in line.items() if name != FIELD}
    return {**rest, FIELD: hash_of(rest)}


def json_bytes(value: Any) -> bytes:
    """Sorted keys and plain ASCII: the same value gives the same bytes."""
    return (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")


def _object(content: bytes, name: str) -> dict[str, Any]:
    try:
        value = parse_object(content)
    except ValueError as error:
        raise BundleError(f"{name}: {plain(str(error))}") from None
    _check_texts(value, name, MOST_LEVELS)
    return value


def _check_members(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    listed = manifest.get("members")
    if not isinstance(listed, dict) or not all(isinstance(said, dict) for said in listed.values()):
        raise BundleError(f"{MANIFEST}: 'members' is missing or of another form")
    there = members.keys() - {MANIFEST, SIGNATURE}
    for name in sorted(there - listed.keys()):
        raise BundleError(f"member '{name}' is not in the manifest")
    for name in sorted(listed.keys() - there):
        raise BundleError(f"member '{plain(name)}' of the manifest is missing")
    for name in sorted(there):
        need(not name.startswith(SOURCES) or len(members[name]) <= MOST_SOURCE, f"member '{name}' is no source: it has over 1 MiB")
        known = name in NEEDED or (name.startswith(ROWS) and name.endswith(".jsonl")) or (name.startswith(SOURCES) and name.endswith(ENDINGS))
        need(known, f"member '{name}' is of no kind that a bundle has")
        right = {"bytes": len(members[name]), "sha256": hashlib.sha256(members[name]).hexdigest()}
        need(listed[name] == right, f"member '{name}' is not the one of the manifest: its size or its SHA-256 differs")


def _lines(name: str, content: bytes) -> list[Line]:
    need(bool(content), f"{name}: it is empty")
    lines = []
    runs = set()
    for number, raw in enumerate(content.removesuffix(b"\n").split(b"\n"), 1):
        where = f"{name}:{number}"
        need(len(raw) <= MOST_LINE, f"{where}: the line has {len(raw)} bytes; {MOST_LINE >> 20} MiB is the most")
        line = _object(raw, where)
        kind, run = line.get("kind"), line.get("run")
        need(line.get("schema") == "attnbench/1", f"{where}: schema is {plain(repr(line.get('schema')))}, not 'attnbench/1'")
        need(kind in ("run", "cell"), f"{where}: kind is {plain(repr(kind))}, not 'run' or 'cell'")
        need(isinstance(run, str), f"{where}: 'run' is missing or no string")
        if kind == "run":
            need(isinstance(line.get("environment"), dict), f"{where}: 'environment' is missing")
            need(_is_named(line.get("protocol")), f"{where}: 'protocol' has no name, hash and departs; rows of earlier versions have none")
            runs.add(run)
        else:
            need(run in runs, f"{where}: no run line of '{plain(str(run))}' stands before it")
            need(_is_cell(line), f"{where}: it lacks the id of a cell, a status, a variant or a source of the right form")
        lines.append(line)
    return lines


def _is_cell(line: Line) -> bool:
    variant, source = line.get("variant"), line.get("source", {})
    named = isinstance(variant, dict) and isinstance(variant.get("name"), str) and isinstance(source, dict)
    texts = (line.get("cell"), line.get("status"), line.get("provided_by", ""), source.get("variant", "")) if named else (None,)
    return all(isinstance(text, str) for text in texts)


def _is_named(protocol: Any) -> bool:
    if not isinstance(protocol, dict) or not isinstance(protocol.get("departs"), list):
        return False
    return all(isinstance(text, str) for text in (protocol.get("name"), protocol.get("hash"), *protocol["departs"]))


def _statement(content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise BundleError(f"{STATEMENT}: not UTF-8") from None
    need(len(text) <= MOST_STATEMENT, f"{STATEMENT}: {len(text)} characters; {MOST_STATEMENT} is the most")
    _check_texts(text, STATEMENT, 0)
    return text.strip()


def is_plain_text(text: str) -> bool:
    """Whether nothing in it steers a terminal or turns the order of letters: no control but a line's end or a tab, no format character."""
    return text.isprintable() or not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co") and c not in "\n\t" for c in text)


def _check_texts(value: Any, where: str, levels: int) -> None:
    if isinstance(value, str):
        need(is_plain_text(value), f"{where}: '{plain(value[:60])}' holds control characters, which a terminal would obey")
    elif isinstance(value, (dict, list)):
        need(levels > 0, f"{where}: lists and objects lie over {MOST_LEVELS} deep within each other")
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_texts(inner, where, levels - 1)


def _protocol(content: bytes) -> dict[str, Any]:
    protocol = _object(content, PROTOCOL)
    definition = protocol.get("definition")
    if not isinstance(definition, dict):
        raise BundleError(f"{PROTOCOL}: 'definition' is missing or no object")
    right = hash_of(definition)
    need(protocol.get("hash") == right, f"{PROTOCOL}: the hash is {plain(repr(protocol.get('hash')))}, and that of the definition {right}")
    named = isinstance(protocol.get("name"), str) and protocol["name"] == definition.get("name")
    need(named, f"{PROTOCOL}: its name is not that of the definition")
    return protocol


def _check_agreement(bundle: Bundle) -> None:
    """What the archive says twice must be the same."""
    right = (bundle.protocol["name"], bundle.protocol["hash"])
    lines = [line for of_file in bundle.rows.values() for line in of_file]
    for line in (line for line in lines if line["kind"] == "run"):
        run, environment = plain(line["run"]), bundle.runs[line["run"]]["environment"]
        other = next((name for name in OF_A_RUN if line["environment"].get(name) != environment.get(name)), "")
        need(not other, f"run '{run}' has two lines of different {other}: one run is of one machine and one program")
        need((line["protocol"]["name"], line["protocol"]["hash"]) == right, f"run '{run}' is of another protocol than {PROTOCOL}")
    environments = {run: line["environment"] for run, line in bundle.runs.items()}
    need(bundle.environment == environments, f"{ENVIRONMENT}: it is not that of the run lines")
    about = about_of(lines, bundle.protocol)
    for name, value in about.items():  # a manifest may leave out all but these two
        said = bundle.manifest.get(name, None if name in ("protocol", "departs") else value)
        need(said == value, f"{MANIFEST}: its '{name}' is not what the rows and {PROTOCOL} say")
    extra = sorted(bundle.manifest.keys() - about.keys() - {"schema", "members"})
    need(not extra, f"{MANIFEST}: '{plain(''.join(extra[:1]))}' is unknown")
