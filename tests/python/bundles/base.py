"""What tests of the two verbs share: a folder, the verbs with the stand-in of the program, what they print."""

from __future__ import annotations

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attnbench.bundles import submit, verify

from ..faults import InFolder
from .archives import members_of, written
from .planted import ENVIRONMENT, Line, cell, honest, run_line, standing_in, text_of

NONCE = "00ff"
# A variant in Python that is honest: errors of 0.5, the times of `linear`, right answers, green checks.
HONEST = "def error(seed): return 0.5\ndef time(length): return 4e-7 * length\ndef wrong(seed): return False\ndef checks(): return True\n"


@dataclass
class Said:
    code: int
    out: str
    err: str
    asked: list[list[str]]


class Verbs(InFolder):
    def said(self, verb: Any, *words: Any, stdin: str | None = None, **behaviour: Any) -> Said:
        out, err = io.StringIO(), io.StringIO()
        terminal = io.StringIO(stdin or "")
        terminal.isatty = lambda: stdin is not None  # type: ignore[method-assign]
        with standing_in(**behaviour) as asked, redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", terminal):
            try:
                code = verb(["verify" if verb is verify.main else "submit", *map(str, words)])
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Said(code, out.getvalue(), err.getvalue(), asked)

    def submitted(self, lines: list[Line], *words: Any, name: str = "rows.jsonl", **behaviour: Any) -> Said:
        (self.folder / name).write_text(text_of(lines))
        return self.said(submit.main, self.folder / name, "-o", self.folder / "made.attnbundle", *words, **behaviour)

    def verified(self, path: Path, *words: Any, **more: Any) -> Said:
        return self.said(verify.main, path, "--nonce", NONCE, *words, **more)

    def archive(self, lines: list[Line] | None = None, **others: bytes) -> Path:
        return written(self.folder, members_of(lines, **others))

    def python_rows(self, source: str, *, error: float = 0.5, factor: float = 1.0) -> list[Line]:
        """Rows of python_mine, of a file with this source, beside exact attention."""
        from attnbench.plots.rows.checksum import hash_of_bytes

        digest = hash_of_bytes(source.encode() + b"Mine")
        own: dict[str, Any] = {"provided_by": "python", "plugin": digest, "source": {"variant": digest}}
        config = {**run_line()["config"], "python": [{"variant": "python_mine", "file": "mine.py", "name": "Mine"}]}
        rows = [cell("speed", v, n, factor=1.0 if v == "full" else factor, **({} if v == "full" else own)) for n in (256, 512) for v in ("full", "python_mine")]
        rows.append(cell("fidelity", "python_mine", factor=error / 0.5, **own))
        return [run_line(config=config), *rows]

    def refused(self, said: Said, *words: str, code: int = 2) -> None:
        self.assertEqual((said.code, said.out), (code, ""), said.err)
        self.assertEqual(said.err.count("\n"), 1, said.err)
        for word in words:
            self.assertIn(word, said.err)
        self.assertTrue(said.err.strip().isprintable(), said.err)


def key(folder: Path, name: str) -> Path:
    """A new ssh key."""
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True, capture_output=True)
    return path


def signers(folder: Path, *keys: Path, name: str = "signers") -> Path:
    path = folder / name
    path.write_text("".join(f"{k.name}@example.org {k.with_suffix('.pub').read_text()}" for k in keys))
    return path


__all__ = ["ENVIRONMENT", "HONEST", "NONCE", "Said", "Verbs", "cell", "honest", "key", "run_line", "signers"]
