"""Archives of planted rows, honest or tampered with before or after the manifest is made; and zip files that no zip program would write."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnbench.bundles.archive import CONTRACT, ENVIRONMENT, MANIFEST, PROTOCOL, STATEMENT, about_of, json_bytes, manifest_of
from attnbench.bundles.container import DAY_ZERO, PLAIN_FILE, packed

from .planted import PROTOCOL as OURS
from .planted import Line, honest, text_of


def members_of(lines: list[Line] | None = None, protocol: dict[str, Any] = OURS, **others: bytes) -> dict[str, bytes]:
    """The members of an archive of the lines, manifest included. `others` are further members, or others in their place, by name: "/" is
    written "__" and "." is "_dot_"."""
    lines = honest() if lines is None else lines
    runs = {line["run"]: line for line in lines if line["kind"] == "run"}
    members = {
        "rows/rows.jsonl": text_of(lines).encode(),
        STATEMENT: b"planted rows\n",
        ENVIRONMENT: json_bytes({run: line["environment"] for run, line in runs.items()}),
        PROTOCOL: json_bytes(protocol),
        CONTRACT: json_bytes({}),
    }
    members |= {name.replace("__", "/").replace("_dot_", "."): content for name, content in others.items()}
    members[MANIFEST] = manifest_of(members, about_of(lines, protocol))
    return members


def written(folder: Path, members: dict[str, bytes], name: str = "planted.attnbundle") -> Path:
    path = folder / name
    path.write_bytes(packed(members))
    return path


@dataclass
class Raw:
    """A member as its headers say, whatever its content is."""

    name: bytes
    content: bytes = b"x"
    mode: int = PLAIN_FILE
    method: int = 0
    flags: int = 0
    said: int | None = None  # the unpacked size that its headers claim
    local_name: bytes | None = None
    extra: bytes = b""
    at: int | None = None  # where its content is said to lie
    system: int = 3
    data: bytes = field(init=False)

    def __post_init__(self) -> None:
        squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
        self.data = squeeze.compress(self.content) + squeeze.flush() if self.method == 8 else self.content

    @property
    def sizes(self) -> tuple[int, int, int]:
        return zlib.crc32(self.content), len(self.data), len(self.content) if self.said is None else self.said


def raw_zip(*members: Raw, before: bytes = b"", between: bytes = b"", after: bytes = b"", comment: bytes = b"", count: int | None = None) -> bytes:
    """A zip of the members as they are."""
    body, directory = before, b""
    for one in members:
        name = one.name if one.local_name is None else one.local_name
        at = len(body) if one.at is None else one.at
        body += struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, one.flags, one.method, 0, DAY_ZERO, *one.sizes, len(name), 0) + name + one.data
        directory += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", one.system << 8 | 20, 20, one.flags, one.method, 0, DAY_ZERO, *one.sizes, len(one.name),
                                 len(one.extra), 0, 0, 0, one.mode << 16, at) + one.name + one.extra  # fmt: skip
    body += between
    number = len(members) if count is None else count
    return body + directory + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, number, number, len(directory), len(body), len(comment)) + comment + after
