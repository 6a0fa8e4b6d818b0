"""Chromium for tests: where it is, and how a test runs a module of tests/python that drives it, which needs the packages of .venv-browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import unittest
from typing import Any

from ..faults import ROOT

PYTHON = ROOT / ".venv-browser" / "bin" / "python"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

PATIENCE_S = 480  # of what takes 200 s beside much other work


def needs_browser(case: type[unittest.TestCase]) -> type[unittest.TestCase]:
    """Skips the case where there is no browser, or nothing that drives one."""
    case = unittest.skipUnless(PYTHON.exists(), "no .venv-browser here: scripts/setup --venv browser")(case)
    return unittest.skipUnless(CHROMIUM, "no Chromium here: apt-get install chromium")(case)


def drive(module: str, *words: object) -> Any:
    """What `module` of tests/python, such as dev.drive_site, prints as JSON when it gets Chromium's path and `words`. Raises AssertionError
    with its message where it stops, and where it takes over `PATIENCE_S`: a browser that crashed leaves its driver waiting for ever."""
    command = [PYTHON, "-m", f"tests.python.{module}", CHROMIUM, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(list(map(str, command)), stdout=pipe, stderr=pipe, text=True, cwd=ROOT, start_new_session=True) as driver:
        try:
            said, complaint = driver.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{module} was not done after {PATIENCE_S} s") from None
        finally:
            if driver.returncode is None:
                os.killpg(driver.pid, signal.SIGKILL)  # the browser too
    if driver.returncode:
        raise AssertionError(complaint)
    return json.loads(said)
