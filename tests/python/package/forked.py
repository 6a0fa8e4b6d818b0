"""A call in a child that fork() makes, ended where it hangs."""

from __future__ import annotations

import multiprocessing
import traceback
import unittest
from collections.abc import Callable
from typing import Any

SECONDS = 60


def in_child(test: unittest.TestCase, call: Callable[[], Any]) -> Any:
    """What `call` gives in a child; the test fails where the child throws, or does not answer."""
    forks = multiprocessing.get_context("fork")
    ours, theirs = forks.Pipe()

    def work() -> None:
        try:
            theirs.send((call(), ""))
        except BaseException:
            theirs.send((None, traceback.format_exc()))

    child = forks.Process(target=work)
    child.start()
    theirs.close()
    try:
        test.assertTrue(ours.poll(SECONDS), "the child hangs")
        answer, fault = ours.recv()
    finally:
        child.kill()
        child.join()
    test.assertEqual(fault, "")
    return answer
