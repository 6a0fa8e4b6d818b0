"""Of the wheel, what holds without a build: which transforms it has, what cibuildwheel does, and which wheels scripts/dev/wheel refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path
from unittest import mock

from dev import wheel

from ..faults import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]


class Configuration(unittest.TestCase):
    def test_wheels_hold_no_fftw(self) -> None:
        self.assertEqual(PROJECT["scikit-build"]["cmake"]["define"]["ATTN_FFT"], "builtin")
        self.assertNotIn("fftw", PROJECT["cibuildwheel"]["before-all"])
        self.assertFalse([stem for stem in wheel.LICENCES if "fftw" in stem])

    def test_cibuildwheel_tries_what_was_tried_in_a_chroot(self) -> None:
        tried = PROJECT["cibuildwheel"]["test-command"].replace('"', "")
        for line, _ in wheel.STEPS:
            words = line.split()[:2] if line.startswith("attnbench") else ["attnbench.attention("]
            if words[-1] != "doctor":
                self.assertIn(" ".join(words), tried)
        self.assertEqual(PROJECT["cibuildwheel"]["test-extras"], ["report"])

    def test_the_page_of_the_package_tells_what_a_wheel_has(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        page = (ROOT / project["readme"]).read_text(encoding="utf-8")
        self.assertNotRegex(page, r"scripts/|\]\((?!https)")  # a clone's commands; links that lead nowhere from the package index
        self.assertIn("pip install 'attnbench[report]'", page)
        count = len(re.findall(r"^  \w+/\w+$", (ROOT / "variants" / "CMakeLists.txt").read_text().partition("set(variants\n")[2].partition(")")[0], re.M))
        self.assertIn(f"for {count}\nvariants", page)

    def test_transforms_are_of_a_known_kind(self) -> None:
        for kind, code in (("builtin", 0), ("fast", 1)):
            done = subprocess.run(["cmake", f"-DATTN_FFT={kind}", "-P", ROOT / "cmake" / "fft.cmake"], capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn('ATTN_FFT is "fast": fftw or builtin', done.stderr)
        for kind in ("fftw", "builtin"):
            self.assertTrue((ROOT / "variants" / "convolution" / f"fft_{kind}.cc").is_file())


    def test_a_source_package_holds_what_the_build_reads(self) -> None:
        """Such as the topics of `attnbench help`, which are compiled in."""
        read = {"docs/help", "results/schema.json", "profiles", "templates", "cmake", "python", "README.md", "LICENSE"}
        for file in ROOT.glob("*/**/CMakeLists.txt"):
            if not file.relative_to(ROOT).parts[0].startswith((".", "build")):
                read |= set(re.findall(r"attn_embed\([^)]*?((?:docs|profiles|templates|results|scripts)/?[\w./]*)", file.read_text(encoding="utf-8")))
        for left_out in PROJECT["scikit-build"]["sdist"]["exclude"]:
            lost = [path for path in read if f"/{path}/".startswith(f"{left_out}/")]
            self.assertEqual(lost, [], left_out)


class Refused(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def made(self, *names: str, tag: str = "manylinux_2_36_x86_64", python: str = "cp311-cp311") -> Path:
        path = self.folder / f"attnbench-1.0.0-{python}-{tag}.whl"
        with zipfile.ZipFile(path, "w") as held:
            for name in names:
                held.writestr(name, "x" * 100)
        return path

    WHOLE = (*wheel.NEEDED, "attnbench/_core.cpython-311-x86_64-linux-gnu.so")

    def test_a_whole_wheel_passes(self) -> None:
        libraries = ("libfmt-5c5e7a1e.so.9.1.0", "libhwy-0a1b2c3d.so.1.0.3", "libboost_program_options-eb83ec57.so.1.74.0", "libgomp-24e2ab19.so.1.0.0")
        self.assertEqual(wheel.faults_in(self.made(*self.WHOLE, *(f"attnbench.libs/{name}" for name in libraries))), [])

    def test_from_python_3_12_on_a_wheel_is_for_all_later_ones(self) -> None:
        stable = (*wheel.NEEDED, "attnbench/_core.abi3.so")
        self.assertEqual(wheel.faults_in(self.made(*stable, python="cp312-abi3")), [])
        for names, python in ((stable, "cp312-cp312"), (self.WHOLE, "cp312-abi3"), (self.WHOLE, "cp313-cp313")):
            (fault,) = wheel.faults_in(self.made(*names, python=python))
            self.assertIn("for all later ones (abi3)", fault)
        self.assertEqual(PROJECT["cibuildwheel"]["build"].split()[-1], "cp312-*")

    def test_each_fault_is_told(self) -> None:
        for left in range(len(self.WHOLE)):
            (fault,) = wheel.faults_in(self.made(*self.WHOLE[:left], *self.WHOLE[left + 1 :]))
            self.assertIn("is not in it", fault)
        (fault,) = wheel.faults_in(self.made(*self.WHOLE, "attnbench.libs/libfftw3f-9c1a2b3d.so.3.6.10"))
        self.assertEqual(fault, "the licence of libfftw3f is not in LICENCES of scripts/dev/wheel.py")
        (fault,) = wheel.faults_in(self.made(*self.WHOLE, tag="linux_x86_64"))
        self.assertEqual(fault, "its tag is not manylinux")
        with mock.patch.object(wheel, "MOST_BYTES", 1000):
            (fault,) = wheel.faults_in(self.made(*self.WHOLE, *(f"attnbench/{i}.py" for i in range(20))))
        self.assertRegex(fault, r"^it has 0\.0 MB; expected at most 0")

    def test_a_step_that_fails_is_one_line(self) -> None:
        with self.assertRaisesRegex(wheel.Fault, r"^'sh -c .*' ended with 3: no luck$"):
            wheel.done("sh", "-c", "echo first; echo no luck >&2; exit 3")

    def test_a_wheel_that_is_not_there_is_wrong_usage(self) -> None:
        done = subprocess.run([sys.executable, "-m", "dev.wheel", "try", "none.whl"], capture_output=True, text=True, cwd=ROOT)
        self.assertEqual(done.returncode, 2)
        self.assertIn("none.whl is no file; expected a wheel, such as", done.stderr)


class Speed(unittest.TestCase):
    def test_ratios_are_of_cells_that_both_have(self) -> None:
        ours = {("full", "forward", 64): [1.0, 2.0, 9.0], ("full", "train", 64): [1.0]}
        theirs = {("full", "forward", 64): [3.0, 3.0, 8.0], ("linear", "train", 64): [1.0]}
        self.assertEqual(wheel.ratios(ours, theirs), {("full", "forward", 64): (1.5, 3.0)})

    def test_cells_that_failed_have_no_time(self) -> None:
        row = {"measure": "speed", "status": "ok", "variant": {"name": "full"}, "axes": {"mode": "forward", "length": 64}, "samples": [0.5]}
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.jsonl"
            others = ({"kind": "run"}, row, row | {"status": "failed", "axes": {"mode": "train", "length": 64}}, row | {"measure": "memory"})
            rows.write_text("\n".join(map(json.dumps, others)))
            self.assertEqual(wheel.times_of(rows), {("full", "forward", 64): [0.5]})

    def test_nothing_in_common_is_a_fault(self) -> None:
        with mock.patch.object(wheel, "done"), mock.patch.object(wheel, "times_of", return_value={}), self.assertRaisesRegex(wheel.Fault, "no cell of '-v full'"):
            wheel.speed(["a", "b"], ["-v", "full"], 1)


if __name__ == "__main__":
    unittest.main()
