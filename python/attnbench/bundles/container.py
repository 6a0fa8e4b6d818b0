"""The file behind a bundle: a zip with plain members alone, in one form. `submit` writes that form, and reading refuses every other,
so that a stranger's file can hide nothing. Sizes are judged before anything is unpacked, and nothing is unpacked to disk."""

from __future__ import annotations

import io
import re
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
MOST_ARCHIVE = 32 * MIB  # bytes of the file
MOST_MEMBERS = 256
MOST_MEMBER = 32 * MIB  # bytes of a member, unpacked
MOST_UNPACKED = 64 * MIB  # bytes of all
MOST_RATIO = 200  # of unpacked to packed; rows reach 20, and a bomb begins at 1000
SMALL = 64 << 10  # bytes, below which the ratio says nothing

# One folder at most, plain characters: no root, no "..", no drive, no name that a file system folds into another.
NAME = re.compile(r"(?:[a-z]{1,20}/)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
PLAIN_FILE = stat.S_IFREG | 0o644

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
DAY_ZERO = 1 << 5 | 1  # of TIME, as a zip writes it


class BundleError(Exception):
    """What is wrong with a bundle, in one line."""


class UnreadableBundle(BundleError):
    """A file that the system does not let us read."""


@dataclass(frozen=True)
class Entry:
    """What the directory at the end of the file says of a member. Sizes in bytes."""

    name: str
    method: int
    crc: int
    packed: int
    unpacked: int
    at: int  # of its local header


def plain(text: str) -> str:
    """The text with everything escaped that a terminal might obey."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def packed(members: dict[str, bytes]) -> bytes:
    """The archive of the members. The same members give the same bytes, with the same zlib."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, TIME)
            info.create_system, info.external_attr = 3, PLAIN_FILE << 16
            archive.writestr(info, members[name], zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    """The members of an archive by name. Raises BundleError for any other form than that of `packed`."""
    entries = _directory(data)
    _judge_sizes(entries)
    return {entry.name: _content(data, entry) for entry in entries}


def read_file(path: Path) -> bytes:
    """The bytes of the archive. Raises UnreadableBundle, and BundleError where the file is too large."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_ARCHIVE + 1)
    except OSError as error:
        raise UnreadableBundle(f"cannot be read: {error.strerror}") from None
    if len(data) > MOST_ARCHIVE:
        raise BundleError(f"it has more than {MOST_ARCHIVE // MIB} MiB, the most that a bundle may have")
    return data


def need(condition: bool, what: str) -> None:
    """Raises BundleError with these words where the condition does not hold."""
    if not condition:
        raise BundleError(what)


def _directory(data: bytes) -> list[Entry]:
    need(len(data) >= END.size and data[:4] in (b"PK\x03\x04", b"PK\x05\x06"), "it is no archive of submit: it does not begin as a zip")
    mark, disk, first_disk, here, count, size, at, comment = END.unpack_from(data, len(data) - END.size)
    need(mark == b"PK\x05\x06" and comment == 0, "bytes follow the end of the archive, or it was cut")
    need(disk == first_disk == 0 and here == count, "it is a part of an archive of several files")
    need(count <= MOST_MEMBERS, f"it has {count} members; {MOST_MEMBERS} is the most")
    need(at + size + END.size == len(data), "bytes stand between its directory and its end")
    entries: list[Entry] = []
    seen: dict[str, str] = {}
    expected = 0  # where the next member begins: nothing lies between members
    place = at
    for _ in range(count):
        entry, place = _central(data, place, at + size)
        folded = entry.name.casefold()
        need(folded not in seen, f"member '{entry.name}' appears twice" if seen.get(folded) == entry.name
              else f"members '{seen.get(folded)}' and '{entry.name}' differ in case alone")  # fmt: skip
        seen[folded] = entry.name
        need(entry.at == expected, f"member '{entry.name}' overlaps another one, or bytes stand before it")
        expected = _end_of(data, entry)
        entries.append(entry)
    need(place == at + size and expected == at, "bytes stand between its members and its directory")
    return entries


def _central(data: bytes, place: int, end: int) -> tuple[Entry, int]:
    need(place + CENTRAL.size <= end, "its directory is cut")
    numbers = CENTRAL.unpack_from(data, place)
    mark, made_by, _, flags, method, time, day, crc, small, large, length, extra, comment, disk, _, mode, at = numbers
    need(mark == b"PK\x01\x02" and place + CENTRAL.size + length <= end, "its directory is broken")
    raw = data[place + CENTRAL.size : place + CENTRAL.size + length]
    name = raw.decode("latin-1")
    where = f"member '{plain(name[:100])}'"
    kind = stat.S_IFMT(mode >> 16)
    need(kind != stat.S_IFLNK, f"{where} is a link")
    need(kind not in (stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK), f"{where} is a device or a pipe")
    need(kind != stat.S_IFDIR and not name.endswith("/"), f"{where} is a folder")
    need(not name.startswith(("/", "\\")) and ":" not in name, f"{where} has an absolute path")
    need(".." not in re.split(r"[/\\]", name), f"{where} leads outside of the archive")
    need(bool(NAME.fullmatch(name)), f"{where} has a name that submit does not write")
    need(flags == 0, f"{where} is encrypted, or of a form that submit does not write")
    need(method in METHODS, f"{where} is packed by method {method}; stored and deflated are read")
    need(mode >> 16 == PLAIN_FILE and made_by >> 8 == 3, f"{where} is no plain file of submit")
    need((time, day) == (0, DAY_ZERO) and extra == comment == disk == 0, f"{where} has a time, a comment or a field that submit does not write")
    return Entry(name, method, crc, small, large, at), place + CENTRAL.size + length


def _end_of(data: bytes, entry: Entry) -> int:
    """Where the member ends. Its own header must say what the directory says."""
    need(entry.at + LOCAL.size <= len(data), f"member '{entry.name}' lies outside of the file")
    mark, _, flags, method, time, day, crc, small, large, length, extra = LOCAL.unpack_from(data, entry.at)
    begin = entry.at + LOCAL.size
    said = (flags, method, time, day, crc, small, large, data[begin : begin + length], extra)
    agreed = (0, entry.method, 0, DAY_ZERO, entry.crc, entry.packed, entry.unpacked, entry.name.encode(), 0)
    need(mark == b"PK\x03\x04" and said == agreed, f"member '{entry.name}': its header and the directory differ")
    return begin + len(entry.name) + entry.packed


def _judge_sizes(entries: list[Entry]) -> None:
    for entry in entries:
        where = f"member '{entry.name}'"
        need(entry.unpacked <= MOST_MEMBER, f"{where} would have {entry.unpacked} bytes; {MOST_MEMBER // MIB} MiB is the most")
        bomb = entry.unpacked > SMALL and entry.unpacked > MOST_RATIO * max(entry.packed, 1)
        need(not bomb, f"{where} would unpack {entry.packed} bytes to {entry.unpacked}: more than {MOST_RATIO} times")
    total = sum(entry.unpacked for entry in entries)
    need(total <= MOST_UNPACKED, f"its members would have {total} bytes; {MOST_UNPACKED // MIB} MiB is the most")


def _content(data: bytes, entry: Entry) -> bytes:
    begin = entry.at + LOCAL.size + len(entry.name)
    raw = data[begin : begin + entry.packed]
    if entry.method == zipfile.ZIP_DEFLATED:
        unpack = zlib.decompressobj(-15)
        try:
            content = unpack.decompress(raw, entry.unpacked + 1)
        except zlib.error:
            raise BundleError(f"member '{entry.name}' is broken") from None
        whole = unpack.eof and not unpack.unused_data and not unpack.unconsumed_tail
    else:
        content, whole = raw, True
    need(whole and len(content) == entry.unpacked, f"member '{entry.name}' has not the size that it says")
    need(zlib.crc32(content) == entry.crc, f"member '{entry.name}' is broken: its check sum differs")
    return content
