"""A report tells the commands of the place that it is made in: of a clone, or of an installed package."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr
from pathlib import Path
from unittest import mock

from attnbench import __main__
from attnbench.plots.rows.read import read_rows
from attnbench.reports import advice, document, records

from .. import fixture
from .test_report import InReport, Page


class Place(InReport):
    def of(self, command: str) -> Page:
        rows = read_rows([self.rows(fixture.quick_cells())])
        with mock.patch.object(document, "COMMAND", command), mock.patch.object(advice, "COMMAND", command):
            return Page(document.document(rows))

    def test_commands_are_those_of_the_place(self) -> None:
        for command in ("attnbench", "scripts/bench"):
            page = self.of(command)
            self.assertEqual(page.data["program"], command)
            self.assertTrue(page.data["advice"]["command"].startswith(f"{command} advise"))

    def test_an_installed_package_names_no_script_of_a_clone(self) -> None:
        with mock.patch("attnbench.plots.rows.crossing.ABSENT", "the program is missing"):
            page = self.of("attnbench")
        data, _, script = page.scripts
        self.assertIn("`${this.program} repro ${", script)  # test_report_browser.py reads what the page shows
        for text in (data, script):
            self.assertEqual(re.findall(r".{30}scripts/.{30}", text), [])
        self.assertNotIn("scripts/", records.sources(mock.Mock(rows=mock.Mock(runs=(), sources=())))["lead"])

    def test_without_plotly_one_line_says_how_to_install_it(self) -> None:
        document._plotly.cache_clear()
        file = self.rows(fixture.accuracy_cells())
        with mock.patch("importlib.util.find_spec", return_value=None), redirect_stderr(io.StringIO()) as err:
            code = __main__.main(["report", str(file), "-o", str(Path(self.folder, "x.html"))])
        self.assertEqual(code, 2)
        self.assertRegex(err.getvalue(), r"\Aattnbench: report needs plotly, which .* does not have; .* -m pip install .*plotly\n\Z")
