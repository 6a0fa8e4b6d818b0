"""The form of the report says what `attnbench advise` says, to the letter: the rule in JavaScript against that in Python, for every
question that the form can ask of planted and of real rows."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from attnbench.advice.choosing import Answer, choose
from attnbench.advice.evidence import Evidence
from attnbench.advice.question import Question, bytes_of
from attnbench.advice.standing import table
from attnbench.advice.words import NAMED, head_text, left_out_texts, line_text, listed, open_text, rests_text
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.read import Rows, read_rows
from attnbench.reports.advice import advice
from attnbench.reports.document import document

from ..advice.planted import EXACT, World, power, square
from ..browser.session import drive, needs_browser
from ..faults import ROOT

NODE = shutil.which("node")
FOLDER = ROOT / "python" / "attnbench" / "reports"
ASK = """
const {data, questions} = JSON.parse(require('fs').readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(questions.map(q => advised(data, q))));
"""
GOOD, SAME, BAD, LUCK = (0.99, 0.992, 0.991), (0.988, 0.99, 0.991), (0.42, 0.38, 0.45), (0.99, 0.12, 0.98)


def world(**told: Any) -> World:
    """Every state of a time, a memory and a score."""
    laws = {"full": EXACT, "linear": power(2e-7, 1), "performer": power(2e-7, 1), "truncated": power(9e-7, 1), "same": EXACT}
    laws |= {"slow": square(3e-9, 1e-6), "unscored": power(3e-7, 1), "lucky": power(5e-7, 1)}
    peaks = {"full": power(4.0, 2), "linear": power(3e4, 1), "performer": power(2e3, 1), "truncated": power(6e3, 1), "slow": power(1e3, 1)}
    tests = {
        "mqar": {"full": GOOD, "linear": BAD, "performer": SAME, "truncated": SAME, "slow": SAME, "lucky": LUCK, "same": SAME, "untimed": SAME},
        "needle": {"full": GOOD, "linear": SAME, "performer": SAME, "truncated": SAME[:2]},
    }
    return World(laws, peaks=peaks, tests=tests, lengths=(512, 2048, 8192), **told)


def questions(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns every question of the form, as advise.js takes it."""
    words = ["", *(t["word"] for t in data["tasks"])]
    limits = [None, *(name for name, _ in data["limits"])]
    found = []
    for place in data["places"]:
        for at in place["lengths"]:
            for limit in limits:
                for word in words:
                    asked = {"mode": place["mode"], "causal": place["causal"], "length": at["length"], "limit": limit, "task": word}
                    found.append(asked)
    return found


def told(answer: Answer, evidence: Evidence) -> dict[str, Any]:
    return {
        "verdict": answer.verdict,
        "text": head_text(answer),
        "lines": [line_text(line, answer) for line in answer.lines],
        "more": listed([f"{line.place}. {line.standing.label}" for line in answer.more], NAMED),
        "undecided": [open_text(found) for found in answer.undecided],
        "left": left_out_texts(answer),
        "rests": rests_text(answer, evidence),
    }


@unittest.skipUnless(NODE, "no node here: apt-get install nodejs")
class Form(unittest.TestCase):
    def rows(self, planted: World) -> Rows:
        with tempfile.TemporaryDirectory() as folder:
            return published(read_rows(planted.write(Path(folder))))

    def compare(self, rows: Rows) -> list[dict[str, Any]]:
        data = advice(rows)
        assert data is not None
        asked = questions(data)
        script = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("units.js", "advice.js")) + ASK
        given = json.dumps({"data": data, "questions": asked})
        done = subprocess.run([str(NODE), "-e", script], input=given, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        evidence = Evidence(rows)
        for question, seen in zip(asked, found, strict=True):
            memory = None if question["limit"] is None else bytes_of(question["limit"])
            own = Question(question["length"], question["mode"], question["causal"], memory, question["task"])
            right = table(evidence, own)
            if seen is None:  # the task asks for a mask that the rows do not have
                self.assertNotEqual(right.question.causal, own.causal)
                continue
            self.assertEqual(seen, told(choose(right), evidence), question)
        return [answer for answer in found if answer]

    def test_the_form_says_what_advise_says_of_planted_rows(self) -> None:
        seen = self.compare(self.rows(world(causal=True, machines=({}, {"lucky": 2.0}))))
        self.assertGreater(len(seen), 100)
        self.assertEqual({answer["verdict"] for answer in seen}, {"take", "undecided"})
        reasons = "\n".join(text for answer in seen for text in (*answer["undecided"], *answer["left"]))
        for word in ("too close", "was not measured", "2 seeds alone", "seeds do not tell", "no score for", "keep less", "slower than", "over 4 MiB"):
            self.assertIn(word, reasons)

    def test_the_form_says_what_advise_says_of_decoding_and_of_exact_attention_alone(self) -> None:
        laws, states = {"full": EXACT, "slow": square(3e-9, 1e-6)}, {"full": power(2048, 1), "slow": power(4096, 1)}
        seen = self.compare(self.rows(World(laws, mode="decode", causal=True, states=states, lengths=(512, 2048))))
        self.assertEqual({answer["verdict"] for answer in seen}, {"exact", "none"})

    def test_the_form_says_what_advise_says_of_real_rows(self) -> None:
        self.compare(published(read_rows([ROOT / "results" / "reference" / "quick.jsonl"])))

    def test_the_page_holds_the_form(self) -> None:
        page = document(self.rows(world(machines=({},))))
        self.assertIn("which variant to take", page.lower())
        self.assertIn('"advice":{"places":[{"mode":"forward"', page)


@needs_browser
class InBrowser(unittest.TestCase):
    def test_the_form_answers_in_a_browser(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            files = world(causal=True, machines=({},)).write(folder)
            page = folder / "page.html"
            page.write_text(document(published(read_rows(files))), encoding="utf-8")
            asked = [[["length", "2048"]], [["task", "recall"], ["memory", "16M"], ["length", "8192"]], [["causal", "false"], ["task", ""]]]
            seen = drive("reports.drive_advice", page, json.dumps(asked))
            evidence = Evidence(published(read_rows(files)))
            for question, answer in zip((Question(2048, causal=True), Question(8192, causal=True, memory=16 << 20, task="recall")), seen["answers"], strict=False):
                right = told(choose(table(evidence, question)), evidence)
                self.assertEqual(answer[: 1 + len(right["lines"])], [right["text"], *right["lines"]])
            self.assertIn("advise machine0.jsonl --length 8192 --mode forward --causal --memory 16M --task recall", seen["answers"][1][-1])
            self.assertIn("no time of this mode under this mask", seen["answers"][2][0])
            self.assertEqual((seen["faults"], seen["axe"]), ([], []))
            self.assertLessEqual(max(seen["widths"].values()), 390, seen["widths"])


if __name__ == "__main__":
    unittest.main()
