"""The folder, the environment and the bounds in which a stranger's code runs."""

from __future__ import annotations

import os
import tempfile
import time
import unittest
from pathlib import Path
from unittest.mock import patch

from attnbench.bundles import sandbox
from attnbench.bundles.sandbox import FENCES, MOST_SAID, Sandbox, fence

PYTHON = ["/usr/bin/env", "python3", "-c"]
HAS_FENCE = unittest.skipUnless(fence()[0], "this system lets nobody leave the network")


class Bounds(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.sandbox = Sandbox(Path(held.name))

    def test_it_says_what_a_command_said(self) -> None:
        done = self.sandbox.run(["sh", "-c", "echo out; echo attnbench: why >&2; exit 5"], 20)
        self.assertEqual((done.code, done.out, done.last_line), (5, "out\n", "why"))

    def test_the_environment_is_not_this_users(self) -> None:
        with patch.dict(os.environ, {"SECRET_TOKEN": "abc", "LD_PRELOAD": "", "SSH_AUTH_SOCK": "/x", "ATTNBENCH_PLUGINS": "/x.so"}):
            out = self.sandbox.run(["env"], 20).out
        names = {line.partition("=")[0] for line in out.splitlines()}
        self.assertFalse(names & {"SECRET_TOKEN", "SSH_AUTH_SOCK", "ATTNBENCH_PLUGINS", "LD_PRELOAD"}, names)
        self.assertIn(f"HOME={self.sandbox.folder}/home", out)

    @HAS_FENCE
    def test_no_network(self) -> None:
        out = self.sandbox.run(["cat", "/proc/net/dev"], 20).out
        self.assertEqual([line.split(":")[0].strip() for line in out.splitlines()[2:]], ["lo"])

    def test_time_is_bounded_and_nothing_is_left(self) -> None:
        mark = self.sandbox.folder / "late"
        before = time.monotonic()
        done = self.sandbox.run(["sh", "-c", f"(sleep 3; touch {mark}) & (sleep 60)"], 1)
        self.assertEqual(done.code, 124)
        self.assertLess(time.monotonic() - before, 20)
        time.sleep(3.5)
        self.assertFalse(mark.exists(), "a child outlived its time")

    @unittest.skipUnless(fence()[0] == FENCES[0][0], "this system has no namespaces of processes for us")
    def test_what_leaves_its_group_ends_too(self) -> None:
        mark = self.sandbox.folder / "late"
        self.sandbox.run(["sh", "-c", f"setsid sh -c 'sleep 2; touch {mark}' >/dev/null 2>&1 & exit 0"], 20)
        time.sleep(3)
        self.assertFalse(mark.exists(), "a daemon outlived the verification")

    def test_files_memory_and_output_are_bounded(self) -> None:
        with patch.object(sandbox, "MOST_FILE", 1000):
            self.sandbox.run(["sh", "-c", "head -c 100000 /dev/zero > big"], 20)
        self.assertLessEqual((self.sandbox.folder / "big").stat().st_size, 1000)
        with patch.object(sandbox, "MOST_DATA", 100 << 20):
            done = self.sandbox.run([*PYTHON, "x = bytearray(1 << 30)"], 20)
        self.assertNotEqual(done.code, 0)
        self.assertIn("MemoryError", done.err)
        self.assertLessEqual(len(self.sandbox.run(["sh", "-c", f"head -c {MOST_SAID + 1000} /dev/zero"], 60).out), MOST_SAID)

    def test_the_strongest_fence_that_works_is_taken(self) -> None:
        fence.cache_clear()
        self.addCleanup(fence.cache_clear)
        with patch.object(sandbox, "FENCES", ((("false",), "x"), (("no-such-program",), "y"), ((), "with the network"))):
            self.assertEqual(fence(), ((), "with the network"))


if __name__ == "__main__":
    unittest.main()
