"""How long reports of 300, 5,000 and 20,000 rows take to open and to redraw in headless Chromium, for an idle machine:
PYTHONPATH=python .venv/bin/python -m tests.python.reports.open_report [TIMES]. It prints medians, with the least and the most."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from attnbench.plots.rows.read import read_rows
from attnbench.reports.document import document

from ..browser.session import CHROMIUM, PYTHON, drive
from . import report_rows

COUNTS = (300, 5_000, 20_000)


def main(times: int) -> int:
    if CHROMIUM is None or not PYTHON.exists():
        print("open_report: needs Chromium and scripts/setup --venv browser", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        pages = []
        for count in COUNTS:
            page = Path(temporary, f"{count}.html")
            rows = report_rows.write(page.with_suffix(".jsonl"), count)
            page.write_text(document(read_rows([rows])), encoding="utf-8")
            pages.append(page)
        load = os.getloadavg()[0]
        found = drive("reports.drive_report", "--times", times, *pages)
        print(f"load average before: {load:.2f}; {times} openings of each, seconds: median (least to most)")
        for page, seen in zip(pages, found.values(), strict=True):
            told = []
            for name in ("open", "first picture", "redraw"):
                values = [one[name] for one in seen]
                told.append(f"{name} {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")
            print(f"{page.stem} rows, {page.stat().st_size / 1e6:.1f} MB: {', '.join(told)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
