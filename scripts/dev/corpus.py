"""The kept inputs of the fuzz targets, a file a target: tests/fuzz/corpus/TARGET.txt, a line an input, its name and base64.

    python scripts/dev/corpus.py unpack FOLDER    # FOLDER/TARGET/NAME for each input of each target
    python scripts/dev/corpus.py pack FOLDER      # writes the files anew from such a folder

An input that the fuzzer found has the name "-": unpacked, the file is named by its bytes, as libFuzzer names files.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import sys
from pathlib import Path

KEPT = Path(__file__).resolve().parents[2] / "tests" / "fuzz" / "corpus"


def unpack(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for file in sorted(KEPT.glob("*.txt")):
        target = folder / file.stem
        target.mkdir(parents=True)
        for line in file.read_text().splitlines():
            name, _, text = line.partition(" ")
            data = base64.b64decode(text, validate=True)
            (target / (hashlib.sha1(data).hexdigest() if name == "-" else name)).write_bytes(data)


def pack(folder: Path) -> None:
    for target in sorted(path for path in folder.iterdir() if path.is_dir()):
        lines = []
        for path in target.iterdir():
            name = "-" if re.fullmatch("[0-9a-f]{40}", path.name) else path.name
            lines.append(f"{name} {base64.b64encode(path.read_bytes()).decode()}\n")
        (KEPT / f"{target.name}.txt").write_text("".join(sorted(lines)))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    (pack if sys.argv[1] == "pack" else unpack)(Path(sys.argv[2]))
