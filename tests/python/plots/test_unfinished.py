"""A score of a training that was cut off is marked, and neither ranked, nor said, nor joined by a line."""

from __future__ import annotations

from typing import Any

from attnbench.plots.kinds.accuracy import accuracy
from attnbench.plots.kinds.overview_rows import warning
from attnbench.plots.kinds.panel_data import Point
from attnbench.plots.kinds.panel_kinds import KINDS
from attnbench.plots.kinds.ranking import ranking
from attnbench.plots.kinds.trades import front, trade_panels
from attnbench.plots.kinds.training import effort, learning
from attnbench.plots.rows.settings import CUT, LOST, MEANINGS, mark_of, unfinished
from attnbench.plots.rows.scores import score
from attnbench.plots.rows.style import Styles
from attnbench.reports import equal_cost
from attnbench.reports.book import Book
from attnbench.reports.scores import Tasks
from attnbench.reports.scores import accuracy as scores_section
from attnbench.reports.scores import tradeoff as trade_section
from attnbench.reports.summary import scores as told_scores
from attnbench.reports.summary import speeds as told_speeds
from attnbench.reports.summary import summary
from dev.pages import ranks
from dev.pages.by_family import scores_of

from .. import fixture
from .test_overview import TILED, InOverview, planted, score_row

PARAMS = {"full": TILED, "linear": {}, "truncated": {"window": 16}, "performer": {"features": 64}}
SCORES = {"full": 0.9, "linear": 0.95, "truncated": 0.6, "performer": 0.4}


def ended(name: str, by: str, test: float | None = None, **old: Any) -> dict[str, Any]:
    row = score_row(name, PARAMS[name], SCORES[name] if test is None else test)
    kept = {k: v for k, v in row["metrics"].items() if k != "stopped_by"}
    return row | {"metrics": kept | ({"ended_by": by} if by else {}) | {"state_bytes": 100, "parameters": 1000} | old}


def cells(**by: str) -> list[dict[str, Any]]:
    """Costs of four variants, and a score each; `by`: those that did not end by `target`."""
    costs = [c for c in planted() if c["measure"] != "accuracy"]
    return [*costs, *(ended(name, by.get(name, "target")) for name in SCORES)]


class Unfinished(InOverview):
    def of(self, **by: str) -> tuple[Any, Styles, Book, Tasks]:
        rows = self.rows(cells(**by))
        book = Book(rows, Styles(rows))
        return rows, book.styles, book, Tasks(book)

    def test_one_predicate_tells_it_of_old_rows_too(self) -> None:
        told = {
            by: (unfinished([c]), mark_of(c), score([c]).is_unfinished)
            for by in ("target", "plateau", "patience", "steps", "time")
            for c in self.rows([ended("full", by)]).of("accuracy")
        }
        cut, whole = (True, CUT, True), (False, "", False)
        self.assertEqual(told, {"target": whole, "plateau": whole, "patience": whole, "steps": cut, "time": cut})
        for by, expected in (("steps", cut), ("target", whole)):
            (old,) = self.rows([ended("full", "", stopped_by=by)]).of("accuracy")
            self.assertEqual((unfinished([old]), mark_of(old), score([old]).is_unfinished), expected)

    def test_a_score_without_a_seed_that_failed_says_so(self) -> None:
        lost = [
            {**(row := ended("linear", "target")), "cell": f"{seed:016x}", "axes": row["axes"] | {"seed": seed}} for seed in (7, 8)
        ]
        lost[1] |= {"status": "diverged", "reason": "the loss was not finite at step 3", "metrics": None, "samples": None}
        rows = self.rows([*(c for c in cells() if c["variant"]["name"] != "linear" or c["measure"] != "accuracy"), *lost])
        found = [c for c in rows.of("accuracy") if c.variant == "linear"]
        self.assertEqual([mark_of(c) for c in found], ["", LOST])
        self.assertEqual((score(found).seeds, score(found).cell), ((0.95,), f"{7:016x} {8:016x}"))
        (picture,) = accuracy(rows, Styles(rows))
        self.assertIn("0.950" + LOST, [t.get_text() for axes in picture.figure.axes for t in axes.texts])
        book = Book(rows, Styles(rows))
        self.assertIn(f"{LOST}: {MEANINGS[LOST]}.", summary(book, Tasks(book)))

    def test_sentences_rank_what_ended_and_name_what_did_not(self) -> None:
        _, _, book, tasks = self.of(linear="steps")
        (said,) = told_scores(book, tasks)
        self.assertIn("score `full", said)
        self.assertNotIn("0.950", said)
        self.assertTrue(said.endswith("; cut off by their steps, and not ranked: `linear`."), said)
        fast = " ".join(told_speeds(book, tasks))
        self.assertIn("its training was cut off", fast)
        self.assertNotIn("0.950", fast)
        _, _, book, tasks = self.of(**dict.fromkeys(SCORES, "steps"))
        self.assertEqual(list(told_scores(book, tasks)), ["On `copy` no training ended by itself: no score is ranked."])
        self.assertNotIn("where exact attention has", " ".join(told_speeds(book, tasks)))

    def test_a_loss_counts_tasks_that_were_cut_off_beside_those_compared(self) -> None:
        """Where trainings end at a target, those that ended by themselves are the good ones."""
        others = [c | {"cell": f"{i:016x}", "task": {"name": "copy", "params": {}}} for i, c in enumerate(cells(truncated="steps")) if c["measure"] == "accuracy"]
        rows = self.rows([*cells(), *others])
        book = Book(rows, Styles(rows))
        told = {s.partition("`")[2].partition("`")[0].split()[0]: s for s in told_speeds(book, Tasks(book))}
        self.assertIn("; on 1 more task a training of either was cut off.", told["truncated"])
        self.assertNotIn("cut off", told["linear"])

    def test_the_trade_off_s_front_passes_it_by(self) -> None:
        rows, styles, book, tasks = self.of(linear="steps")
        (trade,) = trade_panels(rows, styles)
        dots = {d.series.variant: d for d in trade.dots}
        self.assertEqual([n for n, d in dots.items() if d.whole and not d.is_ranked], ["linear"])
        self.assertNotIn(dots["linear"].series.key, trade.front.chance)
        self.assertNotIn(0.95, trade.front.best)
        self.assertIn(0.95, trade_panels(*self.of()[:2])[0].front.best)
        self.assertEqual(front(trade, styles), {d.series.key for d in trade.dots}, "few are all named")
        panel = trade_section(tasks)["panels"][0]
        hollow = [book.told()["series"][line["series"]]["variant"] for line in panel["lines"] if line.get("hollow")]
        self.assertEqual(hollow, ["linear"])

    def test_it_is_best_at_no_budget(self) -> None:
        for by, best in (({}, "linear"), ({"linear": "steps"}, "full")):
            _, _, book, tasks = self.of(**by)
            (contest,) = equal_cost._of_tasks(tasks)
            found = equal_cost.front(contest.candidates, "token", contest.fewer)
            self.assertEqual(found[-1][1].series.variant, best)

    def hollow(self, **by: str) -> int:
        """How many points of the picture of scores are hollow."""
        rows, styles, _, _ = self.of(**by)
        (picture,) = accuracy(rows, styles)
        return sum(x.get_fillstyle() == "none" for axes in picture.figure.axes for x in axes.lines)

    def test_pictures_draw_it_hollow(self) -> None:
        rows, styles, book, tasks = self.of(linear="time")
        self.assertEqual(self.hollow(linear="time"), self.hollow() + 1)
        for kind in ("accuracy", "tradeoff"):
            points = {s.variant: p for panel in KINDS[kind](rows, styles) for s, found in panel.lines
                      for p in (found if isinstance(found, list) else [found])}  # fmt: skip
            self.assertEqual([name for name, p in points.items() if p.is_hollow], ["linear"], kind)
        lines = scores_section(tasks)["panels"][0]["lines"]
        self.assertEqual([book.told()["series"][x["series"]]["variant"] for x in lines if x.get("hollow")], ["linear"])

    def test_learning_curves_join_it_as_score_against_effort_does(self) -> None:
        """Their points are those of one training, which a line goes through."""
        held = [{"step": s, "train_loss": 1.0, "validation": 0.1 * s, "seconds": 1.0 * s} for s in (1, 2, 3)]
        rows = self.rows([c | {"samples": held} if c["measure"] == "accuracy" else c for c in cells(linear="steps")])
        for draw in (learning, effort):
            (picture,) = draw(rows, Styles(rows))
            courses = [x for axes in picture.figure.axes for x in axes.lines if len(x.get_xdata()) == 3]
            self.assertGreaterEqual(len(courses), 4)
            self.assertFalse([x for x in courses if x.get_linestyle() == "None"])
            self.assertTrue(any(t.get_text() == "linear†" for axes in picture.figure.axes for t in axes.texts))

    def test_a_list_has_it_after_what_is_ranked(self) -> None:
        rows, styles, _, tasks = self.of()
        found = [(s, Point(0.1 * i, 0, is_hollow=i == 3)) for i, s in enumerate(tasks.series)]
        listed = ranking("name", "label", "score", found, styles, most_first=True).ranks
        self.assertEqual([round(r.point.x, 1) for r in listed], [0.2, 0.1, 0.0, 0.3])

    def test_a_task_whose_yardstick_was_cut_off_compares_nothing(self) -> None:
        for by, words in (({}, ""), ({"full": "steps"}, "the training of full was cut off")):
            _, styles, _, tasks = self.of(**by)
            self.assertEqual(warning(tasks.groups[0], styles), words)

    def test_ranks_of_pages_leave_it_out(self) -> None:
        path = fixture.write(self.folder / "rows.jsonl", [c for c in cells(linear="steps") if c["measure"] == "accuracy"])
        (scores,) = scores_of(path)
        self.assertEqual(scores.variants, ["full", "linear", "performer", "truncated"])
        self.assertEqual(scores.finished, ["full", "performer", "truncated"])
        page = ranks.table(path)
        self.assertRegex(page, r"\| 0\.900 \(1\) \| 0\.950† \| 0\.400 \(3\) \| 0\.600 \(2\) \|")
        self.assertIn("all trained to their end on none of them.", page)
