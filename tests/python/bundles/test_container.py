"""Archives that hide something are refused before anything is unpacked: each planted kind, by its own line."""

from __future__ import annotations

import stat
import tracemalloc
import unittest
import zipfile
from io import BytesIO
from unittest.mock import patch

from attnbench.bundles.container import MIB, MOST_MEMBERS, BundleError, packed, plain, unpacked

from .archives import Raw, raw_zip


class Form(unittest.TestCase):
    def refused(self, data: bytes, *words: str) -> None:
        with self.assertRaises(BundleError) as caught:
            unpacked(data)
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertTrue(str(caught.exception).isprintable(), "a line for a terminal")

    def test_what_submit_writes_is_read(self) -> None:
        members = {"rows/a.jsonl": b"{}\n" * 1000, "statement.txt": b"", "manifest.json": b"{}"}
        self.assertEqual(unpacked(packed(members)), members)
        self.assertEqual(packed(members), packed(dict(reversed(members.items()))), "the same bytes, in whatever order they come")
        with zipfile.ZipFile(BytesIO(packed(members))) as archive:  # others can open it
            self.assertIsNone(archive.testzip())
        self.assertEqual(unpacked(raw_zip(Raw(b"a"), Raw(b"b", method=8))), {"a": b"x", "b": b"x"}, "the zips of these tests are valid but for their faults")

    def test_paths_that_lead_outside(self) -> None:
        for name in (b"../x", b"rows/../../x", b"..", b"rows\\..\\x"):
            self.refused(raw_zip(Raw(name)), "leads outside")
        for name in (b"/etc/passwd", b"\\x", b"C:x", b"c:\\x", b"//host/x"):
            self.refused(raw_zip(Raw(name)), "absolute path")
        for name in (b"a/b/c", b".hidden", b"a\0b", b"\x1b[31mred", b"a b", b"", b"a\x80", b"rows/", b"./x", b"Rows/x", b"x" * 200):
            self.refused(raw_zip(Raw(name)), "member")

    def test_links_devices_and_folders(self) -> None:
        for kind, word in ((stat.S_IFLNK, "link"), (stat.S_IFCHR, "device"), (stat.S_IFBLK, "device"), (stat.S_IFIFO, "pipe"), (stat.S_IFDIR, "folder")):
            self.refused(raw_zip(Raw(b"a", b"/etc/passwd", mode=kind | 0o777)), word)
        for mode in (stat.S_IFREG | 0o4755, stat.S_IFREG | 0o755, 0):
            self.refused(raw_zip(Raw(b"a", mode=mode)), "no plain file")

    def test_names_that_are_one_name(self) -> None:
        self.refused(raw_zip(Raw(b"a"), Raw(b"a", b"other")), "appears twice")
        self.refused(raw_zip(Raw(b"rows/a"), Raw(b"rows/A")), "differ in case alone")

    def test_bombs_are_refused_unopened(self) -> None:
        bomb = raw_zip(Raw(b"a", bytes(30 * MIB), method=8))
        tracemalloc.start()
        self.refused(bomb, "more than 200 times")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(most, MIB)
        self.refused(raw_zip(Raw(b"a", b"x", said=1 << 31)), "32 MiB is the most")
        liar = raw_zip(Raw(b"a", bytes(30 * MIB), method=8, said=1000))  # says little and unpacks to much
        tracemalloc.start()
        self.refused(liar, "has not the size")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(most, MIB)
        with patch("attnbench.bundles.container.MOST_UNPACKED", 100):
            self.refused(raw_zip(*(Raw(f"{i}".encode(), b"x" * 40) for i in range(3))), "its members would have 120 bytes")

    def test_thousands_of_members(self) -> None:
        self.refused(raw_zip(*(Raw(f"{i}".encode()) for i in range(5000))), "5000 members", str(MOST_MEMBERS))
        self.refused(raw_zip(Raw(b"a"), Raw(b"b"), count=1), "directory")
        self.refused(raw_zip(Raw(b"a"), count=2), "directory is cut")

    def test_bytes_that_no_member_owns(self) -> None:
        self.refused(raw_zip(Raw(b"a"), after=b"#!/bin/sh"), "bytes follow the end")
        self.refused(raw_zip(Raw(b"a"), comment=b"hello"), "bytes follow the end")
        self.refused(raw_zip(Raw(b"a"), before=b"MZ"), "does not begin as a zip")
        self.refused(raw_zip(Raw(b"a"), before=b"PK\x03\x04"), "bytes stand before")
        self.refused(raw_zip(Raw(b"a"), between=b"hidden"), "bytes stand between")
        self.refused(raw_zip(Raw(b"a", extra=b"\x01\x00\x00\x00")), "a field that submit does not write")

    def test_members_that_overlap(self) -> None:
        self.refused(raw_zip(Raw(b"a", b"x" * 100), Raw(b"b", b"x" * 100, at=0)), "overlaps")

    def test_two_headers_that_differ(self) -> None:
        self.refused(raw_zip(Raw(b"good", local_name=b"evil")), "differ")

    def test_other_forms(self) -> None:
        self.refused(raw_zip(Raw(b"a", flags=1)), "encrypted")
        self.refused(raw_zip(Raw(b"a", flags=8)), "form that submit does not write")
        self.refused(raw_zip(Raw(b"a", method=12)), "method 12")
        self.refused(raw_zip(Raw(b"a", system=0)), "no plain file")
        for data in (b"", b"PK", b"\x1f\x8b" + bytes(100), b"ustar" * 100):
            self.refused(data, "no archive of submit")
        whole = packed({"a": b"x" * 500})
        for cut in (30, 60, len(whole) - 1):
            self.refused(whole[:cut], "")
        broken = bytearray(raw_zip(Raw(b"a", b"content")))
        broken[broken.index(b"content")] ^= 1
        self.refused(bytes(broken), "check sum differs")

    def test_any_byte_changed_is_refused_or_harmless(self) -> None:
        """No exception but BundleError, whatever byte is another."""
        members = {"manifest.json": b"{}", "rows/a.jsonl": b'{"a": 1}\n'}
        whole = packed(members)
        for place in range(len(whole)):
            for change in (0x01, 0x80, 0xFF):
                data = whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :]
                try:
                    found = unpacked(data)
                except BundleError:
                    continue
                self.assertEqual(found, members, f"byte {place}")

    def test_what_is_printed_is_plain(self) -> None:
        self.assertEqual(plain("a\x1b[2J"), "a\\x1b[2J")
        self.assertEqual(plain("é"), "é")
