"""Faults of a rows file: a flipped bit, NULs at the end, a torn last line, two sweeps at once, a reader that leaves."""

from __future__ import annotations

import json
import random
import subprocess

from ..faults import BUILT, CELLS, PROGRAM, SWEEP, FaultCase, read_rows


@BUILT
class DamagedRows(FaultCase):
    """A whole file is made once; each test damages a copy."""

    whole: bytes

    def setUp(self) -> None:
        super().setUp()
        if not hasattr(DamagedRows, "whole"):
            self.assertEqual(self.sweep().returncode, 0)
            DamagedRows.whole = self.rows_file.read_bytes()

    def flipped(self, place: int, bit: int) -> bytes:
        data = bytearray(self.whole)
        data[place] ^= 1 << bit
        return bytes(data)

    def test_a_bit_flipped_in_any_row_is_seen(self) -> None:
        """In every line, at random places: the line is named, and the file stays as it is."""
        seen, harmless = 0, 0
        chosen = random.Random(15)
        starts = [0]
        for line in self.whole.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for number in range(len(starts) - 1):
            for _ in range(12):
                place = chosen.randrange(starts[number], starts[number + 1])
                data = self.flipped(place, chosen.randrange(8))
                self.rows_file.write_bytes(data)
                done = self.sweep()
                if done.returncode == 0:
                    self.assert_means_the_same(data)
                    harmless += 1
                    continue
                seen += 1
                last_newline = place == len(self.whole) - 1
                self.assertFalse(last_newline, "a torn line, which is measured again")
                self.assert_one_line(done, 2, rf"rows.jsonl(:{number + 1}: | is not a rows file)")
                self.assertEqual(self.rows_file.read_bytes(), data)
        self.assertGreater(seen, 10 * harmless)

    def assert_means_the_same(self, data: bytes) -> None:
        """A flip may change how a number is written (e for E), or the last newline: the line is measured again."""
        if not data.endswith(b"\n"):
            return
        self.assertEqual(self.figures(data), self.figures(self.whole))

    def figures(self, data: bytes) -> list[dict]:
        """Without the checksums, by whatever name."""
        sums = [row["checksum"] for row in self.rows()]
        rows = [json.loads(line) for line in data.splitlines()]
        return [{name: value for name, value in row.items() if value not in sums} for row in rows]

    def test_a_figure_that_was_changed_is_seen(self) -> None:
        """The change keeps the schema: only the checksum tells."""
        self.rows_file.write_bytes(self.whole.replace(b'"peak_bytes":', b'"peak_bytes":1', 1))
        done = self.sweep()
        self.assert_one_line(done, 2, "rows.jsonl:2: the line was changed .*: its checksum does not")

    def test_without_the_damaged_line_the_file_goes_on(self) -> None:
        lines = self.whole.splitlines(keepends=True)
        lines[3] = lines[3].replace(b'"ok"', b'"oj"')
        self.rows_file.write_bytes(b"".join(lines))
        done = self.sweep()
        self.assert_one_line(
            done, 2, "rows.jsonl:4: .*take that line out, and its cell is measured"
        )
        del lines[3]  # as the message says
        self.rows_file.write_bytes(b"".join(lines))
        self.assert_resumes(read_rows(self.rows_file))

    def test_a_damaged_first_line_leaves_force(self) -> None:
        self.rows_file.write_bytes(self.whole.replace(b'"argv"', b'"arfv"', 1))
        done = self.sweep()
        self.assert_one_line(done, 2, "rows.jsonl:1: .*; name another output file, or --force")
        self.assertEqual(self.sweep("--force").returncode, 0)
        self.assert_resumes()

    def test_nuls_at_the_end(self) -> None:
        """A file system may leave them after a power cut."""
        for size in (1, 700, 4096):
            self.rows_file.write_bytes(self.whole + b"\0" * size)
            self.assert_resumes(self.rows())
        cut = self.whole[: self.whole[:-1].rindex(b"\n") + 1]
        self.rows_file.write_bytes(cut + b"\0" * (len(self.whole) - len(cut)))
        self.assert_resumes([json.loads(line) for line in cut.splitlines()])

    def test_nuls_alone(self) -> None:
        self.rows_file.write_bytes(b"\0" * 4096)
        self.assert_resumes()

    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.whole.splitlines()]

    def test_a_torn_last_line(self) -> None:
        start = self.whole[:-1].rindex(b"\n") + 1
        chosen = random.Random(1)
        for cut in [
            start + 1,
            len(self.whole) - 1,
            *chosen.sample(range(start, len(self.whole)), 4),
        ]:
            self.rows_file.write_bytes(self.whole[:cut])
            self.assert_resumes(self.rows()[:CELLS])

    def test_a_torn_first_line(self) -> None:
        for cut in (0, 1, 30, self.whole.index(b"\n")):
            self.rows_file.write_bytes(self.whole[:cut])
            self.assert_resumes()


@BUILT
class TwoSweeps(FaultCase):
    def test_on_one_file(self) -> None:
        """The second says so and leaves the file alone; after the first it goes on."""
        slow = [('"length":24', "sleep:3000")]
        first = self.start(faults=slow)
        self.wait_until(self.has_lines(2), running=first)
        second = self.sweep()
        self.assert_one_line(second, 2, "rows.jsonl: another run is writing to it")
        self.assertEqual(first.wait(), 0)
        rows = read_rows(self.rows_file)
        self.assertEqual(len(rows), 1 + CELLS)
        self.assert_resumes(rows)

    def test_shards_one_after_the_other_make_one_file(self) -> None:
        for shard in ("0/3", "1/3", "2/3"):
            self.assertEqual(self.sweep("--shard", shard).returncode, 0)
        self.assert_resumes(read_rows(self.rows_file))

    def test_a_shard_in_which_variants_share_no_length(self) -> None:
        """Its tables are printed as far as they go."""
        for shard in ("0/5", "1/5", "2/5", "3/5", "4/5"):
            sweep = [*SWEEP, "-v", "full", "-v", "conv", "--shard", shard]
            done = self.sweep("--force", sweep=sweep)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shard)

    def test_shards_of_two_files_put_together_are_refused(self) -> None:
        """A file is of one run; pictures take several files."""
        files = []
        for shard in ("0/2", "1/2"):
            self.rows_file = self.folder / f"{shard[0]}.jsonl"
            self.assertEqual(self.sweep("--shard", shard).returncode, 0)
            files.append(self.rows_file.read_bytes())
        self.rows_file = self.folder / "both.jsonl"
        self.rows_file.write_bytes(b"".join(files))
        self.assert_one_line(
            self.sweep(), 2, "both.jsonl:[0-9]+: run: .* is not the run of the first .*; a file holds"
        )


@BUILT
class ClosedPipe(FaultCase):
    def piped(self, command: str, faults=()) -> tuple[str, str]:
        """What the pipe says, and the program's exit code."""
        done = subprocess.run(
            ["bash", "-c", command + '; echo "${PIPESTATUS[0]}"'],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment(faults),
            timeout=120,
        )
        *said, status = done.stdout.splitlines()
        self.assertEqual(done.stderr, "")
        return "\n".join(said), status

    def test_of_tables(self) -> None:
        """The rows are whole before a table is printed."""
        words = " ".join(SWEEP)
        said, status = self.piped(f"'{PROGRAM}' {words} -q -o rows.jsonl | true")
        self.assertEqual((said, status), ("", "141"))
        held = read_rows(self.rows_file)
        self.assertEqual(len(held), 1 + CELLS)
        self.assert_resumes(held)

    def test_of_progress_in_mid_sweep(self) -> None:
        words = " ".join(SWEEP)
        slow = [('"length":16,', "sleep:3000")]  # head leaves meanwhile
        command = f"'{PROGRAM}' {words} --verbose -o rows.jsonl 2>&1 | head -n 4"
        said, status = self.piped(command, slow)
        self.assertEqual((len(said.splitlines()), status), (4, "141"))
        held = read_rows(self.rows_file)
        self.assertLess(len(held), 1 + CELLS)
        self.assert_resumes(held)


@BUILT
class ClosedStreams(FaultCase):
    """A rows file that got the number of a closed stream would receive what is printed."""

    def run_without(self, closed: str, file: str) -> subprocess.CompletedProcess:
        before = ["bash", "-c", f'exec "$@" {closed}', "bash"]
        return self.run_program(*SWEEP, "--verbose", "-o", file, before=before)

    def assert_rows_are_whole(self, closed: str, code: int) -> None:
        self.rows_file.unlink(missing_ok=True)
        self.assertEqual(self.run_without(closed, "rows.jsonl").returncode, code)
        self.assertEqual(len(read_rows(self.rows_file)), 1 + CELLS)

    def test_of_input_and_errors(self) -> None:
        for closed in ("<&-", "2>&-", "<&- 2>&-"):
            with self.subTest(closed=closed):
                self.assert_rows_are_whole(closed, 0)

    def test_of_output(self) -> None:
        """The tables cannot be written; the rows are whole."""
        for closed in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed=closed):
                self.assert_rows_are_whole(closed, 6)
                self.assertEqual(self.run_without(closed, "-").returncode, 6)
