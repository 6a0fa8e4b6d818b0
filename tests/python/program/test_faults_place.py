"""Where and when a sweep runs: clocks that jump, locales with commas, no HOME, odd paths; one core, 64 cores
claimed, a CPU quota."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from ..faults import (
    BUILT,
    CELLS,
    PROGRAM,
    ROOT,
    SWEEP,
    FaultCase,
    control_group,
    read_rows,
    tool,
)

ODD = [
    "two words",
    "it's",
    'say "so"',
    "Übung — 注意力 🙂",
    "-dash",
    "a\nline",
    "$(false) `false` *",
    "x" * 200,
]


@BUILT
class Clock(FaultCase):
    def jumping(self, first: str, then: str) -> dict:
        """libfaketime gives another date to the second half of a sweep; the monotonic clock goes on, as it does in fact."""
        tool(self, "faketime", "faketime")
        found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
        if not found:
            self.skipTest("libfaketime is missing (Debian package faketime)")
        stamp = self.folder / "stamp"
        stamp.write_text(first)
        fake = {
            "FAKETIME_TIMESTAMP_FILE": str(stamp),
            "FAKETIME_NO_CACHE": "1",
            "LD_PRELOAD": str(found[0]),
        }
        os.environ["LD_PRELOAD"] = str(found[0])  # faults.py adds to it
        self.addCleanup(os.environ.pop, "LD_PRELOAD", None)
        del fake["LD_PRELOAD"]
        slow = [('"length":24', "sleep:1500")]
        running = self.start("--timeout", "30s", faults=slow, DONT_FAKE_MONOTONIC="1", **fake)
        self.wait_until(self.has_lines(2), running=running)
        stamp.write_text(then)
        self.assertEqual(running.wait(timeout=60), 0)
        rows = read_rows(self.rows_file)
        self.assertEqual([row["status"] for row in rows[1:]], ["ok"] * CELLS)
        self.assertTrue(all(row["duration_s"] < 25 for row in rows[1:]))
        del os.environ["LD_PRELOAD"]
        self.assert_resumes(rows)
        return {row["started_at"][:4] for row in rows}

    def test_set_back(self) -> None:
        self.assertEqual(
            self.jumping("@2030-01-01 00:00:00", "@1999-12-31 23:59:50"), {"2030", "1999"}
        )

    def test_set_forward(self) -> None:
        self.assertEqual(
            self.jumping("@2026-01-01 00:00:00", "@2090-06-01 00:00:00"), {"2026", "2090"}
        )


@BUILT
class Locale(FaultCase):
    def test_with_commas(self) -> None:
        """Numbers are read and written with points."""
        localedef = tool(self, "localedef", "libc-bin")
        folder = self.folder / "locales"
        folder.mkdir()
        made = [localedef, "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
        done = subprocess.run(made, capture_output=True, text=True)
        if done.returncode > 1:  # 1: made, with warnings
            self.skipTest(
                f"no locale could be made (Debian package locales): {done.stderr.strip()}"
            )
        german = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LOCPATH": str(folder)}
        spoken = subprocess.run(
            ["bash", "-c", "printf '%.1f' 1,5"],
            capture_output=True,
            text=True,
            env={**os.environ, **german},
        )
        self.assertEqual(spoken.stdout, "1,5", "the locale works")
        asked = ["--timeout", "1.5m", "--max-memory", "1.5G", "--format", "csv"]
        done = self.sweep(*asked, more=german)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = read_rows(self.rows_file)
        config = rows[0]["config"]
        self.assertEqual((config["timeout_s"], config["max_memory_bytes"]), (90, 3 * 2**29))
        header, *lines = done.stdout.splitlines()
        for line in lines:
            self.assertEqual(line.count(","), header.count(","), line)
        self.assert_resumes(rows)


@BUILT
class Places(FaultCase):
    def test_without_home_and_tmpdir(self) -> None:
        """With no variable at all, and with those that name what nobody can make."""
        nowhere = "/dev/null/home"
        for given in ({}, {"HOME": nowhere, "TMPDIR": nowhere, "XDG_CACHE_HOME": ""}):
            for more in ([], ["-n", "--pilots"]):
                file = self.folder / f"{len(given)}{len(more)}.jsonl"
                command = [PROGRAM, *SWEEP, "-q", *more, "-o", file]
                done = subprocess.run(
                    command, capture_output=True, text=True, env=given, cwd=self.folder
                )
                self.assertEqual(done.returncode, 0, (given, more, done.stderr))
                self.assertNotIn("attnbench:", done.stderr)
        self.assertEqual(len(list(self.folder.iterdir())), 2, "rows alone were written")

    def test_odd_paths(self) -> None:
        """As a folder, as a file, and in the line that says how to go on."""
        for name in ODD:
            with self.subTest(name=name):
                self.rows_file = self.folder / name / f"{name}.jsonl"
                self.assert_resumes()
                self.assert_resumes(read_rows(self.rows_file))

    def test_the_program_in_an_odd_path(self) -> None:
        for name in ODD[:5]:
            with self.subTest(name=name):
                place = self.folder / f"at {name}"
                place.mkdir()
                program = shutil.copy(PROGRAM, place / "attnbench")
                file = place / "rows.jsonl"
                done = self.run_program(*SWEEP, "-q", "-o", file, program=program)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_line_that_says_how_to_go_on(self) -> None:
        """Its words reach a shell as they were, whatever the path holds."""
        self.rows_file = self.folder / 'it\'s $(a) "place" 注' / "rows of mine.jsonl"
        self.rows_file.parent.mkdir()
        command = [PROGRAM, *SWEEP, "-o", self.rows_file]
        hanging = self.environment([('"length":24', "hang")])
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=hanging
        )
        self.addCleanup(running.kill)
        self.wait_until(self.has_lines(3), running=running)
        running.terminate()
        _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 143)
        hint = said[said.index("To go on: ") + len("To go on: ") :].strip()
        done = subprocess.run(
            hint, shell=True, env=self.environment(), capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = read_rows(self.rows_file)
        self.assertEqual(len({row["cell"] for row in rows[1:]}), CELLS)
        self.assertEqual(len(rows), 1 + CELLS)

    def test_a_name_that_is_not_utf8(self) -> None:
        """A row is UTF-8 and holds the arguments: what is none is replaced there, and the file has its name."""
        name = os.fsencode(self.folder) + b"/caf\xe9.jsonl"
        command = [os.fsencode(PROGRAM), *(word.encode() for word in SWEEP), b"-q", b"-o", name]
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, env=self.environment())
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        rows = read_rows(Path(os.fsdecode(name)))
        self.assertEqual(len(rows), 1 + CELLS)
        self.assertTrue(rows[0]["argv"][-1].endswith("caf\ufffd.jsonl"), rows[0]["argv"])


SPEED = [
    "run",
    "-v",
    "mean",
    "--measure",
    "speed",
    "--length",
    "64",
    "--heads",
    "2",
    "--head-dim",
    "8",
]
SPEED += ["--repetitions", "3"]
MANY_CELLS = 66
MANY = ["run", "-v", "linear", "--measure", "fidelity", "--length", f"8:{8 * MANY_CELLS}:+8"]
MANY += ["--heads", "1", "--head-dim", "8", "--max-memory", "1G"]


def children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended
        return []


@BUILT
class Cores(FaultCase):
    def environment_of_run(self) -> dict:
        return read_rows(self.rows_file)[0]["environment"]

    def said(self, done) -> list[str]:
        return [line for line in done.stderr.splitlines() if line.startswith("attnbench: ")]

    def timed(self, threads: int, *before: str):
        arguments = [*SPEED, "--threads", str(threads), "-o", self.rows_file]
        done = self.run_program(*arguments, before=before)
        self.assertEqual(done.returncode, 0, done.stderr)
        [row] = read_rows(self.rows_file)[1:]
        self.assertEqual((row["status"], row["axes"]["threads"]), ("ok", threads))
        return done

    def test_64_threads_on_fewer_cores(self) -> None:
        cores = len(os.sched_getaffinity(0))
        if cores >= 64:
            self.skipTest("this machine has 64 cores")
        [line] = self.said(self.timed(64))
        self.assertRegex(line, rf"\Aattnbench: 64 threads run on {cores} cores?[: ]")

    def test_as_many_threads_as_cores_are_no_news(self) -> None:
        self.assertEqual(self.said(self.timed(1)), [])

    def test_64_jobs(self) -> None:
        """Cells of fidelity run side by side; each waits a while, so that several are seen at once."""
        running = self.start("-j", "64", sweep=MANY, faults=[('"do":"measure"', "sleep:500")])
        most = 0
        while running.poll() is None:
            most = max(most, len(children(running.pid)))
            time.sleep(0.01)
        self.assertEqual((running.returncode, running.stderr.read()), (0, ""))
        self.assertGreater(most, 8)
        self.assert_resumes(read_rows(self.rows_file), cells=MANY_CELLS, sweep=MANY)

    def test_one_core(self) -> None:
        taskset = tool(self, "taskset", "util-linux")
        one = str(min(os.sched_getaffinity(0)))
        [line] = self.said(self.timed(2, taskset, "-c", one))
        self.assertRegex(line, r"\Aattnbench: 2 threads run on 1 core:")
        self.assertEqual(self.environment_of_run()["threads"], 1)

    def test_one_core_of_more_is_another_machine(self) -> None:
        """Rows of both in one file would not compare."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("this machine has one core")
        self.assertEqual(self.sweep().returncode, 0)
        held = self.rows_file.read_bytes()
        one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        wider = self.sweep("--seed", "1", before=one)
        self.assert_one_line(
            wider, 2, "measured elsewhere .*environment.threads: [0-9]+ there, 1 here"
        )
        self.assertEqual(self.rows_file.read_bytes(), held)
        self.assert_resumes(read_rows(self.rows_file), CELLS)

    def test_a_cpu_quota(self) -> None:
        """Half a core: the sweep ends, its run line holds the quota, and one line says it."""
        with control_group(self, "cpu") as (group, version_two):
            if version_two:
                (group / "cpu.max").write_text("50000 100000")
            else:
                (group / "cpu.cfs_period_us").write_text("100000")
                (group / "cpu.cfs_quota_us").write_text("50000")
            join = ["bash", "-c", f'echo $$ > "{group}/cgroup.procs"; exec "$@"', "bash"]
            [line] = self.said(self.timed(2, *join))
        self.assertIn("2 threads run on 1 core (the CPU quota is 0.5): ", line)
        found = self.environment_of_run()
        self.assertEqual((found["cpu_quota"], found["threads"]), (0.5, 1))

    def test_64_cores_of_which_a_quota_leaves_two(self) -> None:
        """As in a container of version 2, whose files are made up here, in a mount namespace."""
        unshare = tool(self, "unshare", "util-linux")
        fake = self.folder / "cgroup"
        fake.mkdir()
        (fake / "cpu.max").write_text("150000 100000\n")
        (self.folder / "groups").write_text("0::/\n")
        binds = f"mount --bind '{fake}' /sys/fs/cgroup && mount --bind '{self.folder}/groups' /proc/self/cgroup"
        # /proc/self is another process's after exec of a shell's child, so that the file is bound by its number.
        script = binds.replace("/proc/self", "/proc/$$") + ' && exec "$@"'
        done = self.sweep(before=[unshare, "-rm", "bash", "-c", script, "bash"])
        # 1: unshare has no permission; 32: mount has none.
        if done.returncode in (1, 32) and not Path(self.rows_file).exists():
            self.skipTest(f"no namespaces here: {done.stderr.strip()}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = self.environment_of_run()
        cores = min(2, len(os.sched_getaffinity(0)))
        self.assertEqual((found["cpu_quota"], found["threads"]), (1.5, cores))


class CopiedClone(FaultCase):
    # In place of the program: a script that names the folder of its sources and what stands there.
    PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small NONE)
file(READ word.txt word)
file(CONFIGURE OUTPUT attnbench CONTENT "#!/bin/sh\\necho ${word} of ${CMAKE_SOURCE_DIR}\\n")
execute_process(COMMAND chmod +x ${CMAKE_BINARY_DIR}/attnbench)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS word.txt)
add_custom_target(attnbench)
"""
    PRESETS = """{"version": 6, "configurePresets": [{"name": "native", "generator": "Ninja",
"binaryDir": "${sourceDir}/build/native"}]}"""

    def clone(self) -> Path:
        folder = self.folder / "first"
        shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("dev"))
        (folder / "CMakeLists.txt").write_text(self.PROJECT)
        (folder / "CMakePresets.json").write_text(self.PRESETS)
        (folder / "word.txt").write_text("sources")
        return folder

    def bench(self, folder: Path) -> subprocess.CompletedProcess:
        wanted = hashlib.sha256((folder / "scripts/requirements.txt").read_bytes()).hexdigest()
        python = folder / ".venv/bin/python"  # no environment is made, because one seems to be there
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text("")
        python.chmod(0o755)
        (folder / ".venv/stamp").write_text(f"{wanted}  - {folder}\n")
        command = [folder / "scripts/bench", "list"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_builds_its_own_sources(self) -> None:
        first = self.clone()
        self.assertEqual(self.bench(first).stdout, f"sources of {first}\n")
        copy = self.folder / "copy"
        shutil.copytree(first, copy)
        (copy / "word.txt").write_text("changed")
        done = self.bench(copy)
        self.assertEqual(done.stdout, f"changed of {copy}\n")
        self.assertIn(f"configured for {first}, not for {copy}: configuring it afresh", done.stderr)
        self.assertNotIn("afresh", self.bench(copy).stderr)  # once

        moved = self.folder / "moved"
        copy.rename(moved)
        self.assertEqual(self.bench(moved).stdout, f"changed of {moved}\n")
        link = self.folder / "link"
        link.symlink_to(moved)  # another name of the same folder
        self.assertNotIn("afresh", self.bench(link).stderr)
