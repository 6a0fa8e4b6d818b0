"""Asks the form of a report in Chromium and prints what it answers as JSON; runs in .venv-browser, for test_report_advice.py:
python -m tests.python.reports.drive_advice CHROMIUM PAGE.html QUESTIONS, of which each is a list of [field, value]."""

from __future__ import annotations

import json
import sys

from ..browser.pages import audit, opened, started, width


def main(chromium: str, file: str, questions: str) -> None:
    faults: list[str] = []
    with started(chromium) as browser:
        page = opened(browser, file, faults, viewport={"width": 390, "height": 844})
        page.wait_for_selector("#advice .verdict")
        answers = []
        for question in json.loads(questions):
            for name, value in question:
                page.select_option(f"select[name=advice-{name}]", value)
            answers.append(page.eval_on_selector_all("#advice .answer p", "found => found.map(p => p.textContent)"))
        widths = {"form": page.evaluate("document.getElementById('advice').scrollWidth"), "page": width(page)}
        found = audit(page, within="#advice")
    print(json.dumps({"answers": answers, "faults": faults, "axe": found, "widths": widths}))


if __name__ == "__main__":
    main(*sys.argv[1:])
