"""The tables of docs/ that commands make from rows."""

import html
import json
import re
import shlex
import tempfile
import unittest
from pathlib import Path

from attnbench._place import ROOT
from attnbench.plots.kinds.overview import overview
from attnbench.plots.layout.page import noted
from attnbench.plots.rows.learned import published
from attnbench.plots.rows.learning import Learning
from attnbench.plots.rows.read import read_rows
from attnbench.plots.rows.style import Styles
from dev.pages import by_block, by_family, captured, catalog, documents, orders, passes

from ..faults import BUILT


class Documents(unittest.TestCase):
    def test_a_table_is_put_between_its_marks(self):
        text = "a\n\n<!-- scripts/peers --table x -->\n\nold\n\n<!-- end of table -->\n\nb\n"
        self.assertEqual(documents.commands(text), ["scripts/peers --table x"])
        made = documents.renewed(text, lambda command: f"of {command}")
        self.assertEqual(made, text.replace("old", "of scripts/peers --table x"))

    def test_a_place_without_a_table_ends_at_its_own_mark(self):
        empty = "<!-- scripts/peers --table x -->\n\n<!-- end of table -->\n\nkept\n\n"
        text = f"{empty}<!-- scripts/peers --table y -->\n\nold\n\n<!-- end of table -->\n"
        self.assertEqual(documents.commands(text), ["scripts/peers --table x", "scripts/peers --table y"])
        made = documents.renewed(text, lambda command: f"of {command[-1]}")
        self.assertEqual(made, text.replace("-->\n\n<!-- end", "-->\n\nof x\n\n<!-- end", 1).replace("old", "of y"))

    def test_no_page_is_longer_than_400_lines(self):
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
        lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in pages}
        self.assertEqual({name: count for name, count in lines.items() if count > 400}, {})

    @BUILT  # for the tables of the catalogue
    def test_every_table_in_docs_is_what_its_command_prints(self):
        found = documents.documents()
        self.assertEqual(
            [path.name for path in found],
            ["README.md", "blocks.md", "decoding.md", "locality.md", "peers.md", "performance.md", "published.md", "recurrences.md", "reference.md", "survey.md",
             "variants.md"],  # fmt: skip
        )
        for path in found:
            text = path.read_text(encoding="utf-8")
            for command in documents.commands(text):
                for word in shlex.split(command):
                    if word.endswith(".jsonl"):
                        self.assertTrue((ROOT / word).exists(), command)
            self.assertEqual(documents.renewed(text), text, path.name)


class Catalogue(unittest.TestCase):
    def variant(self, name, family, paper, **traits):
        known = {"causal": False, "cross": False, "decode": False}
        return {"name": name, "family": family, "paper": paper, "summary": "s", "cost_formula": "c", "traits": known | traits}

    def test_a_family_is_a_line_and_a_variant_links_its_paper(self):
        told = catalog.families([
            self.variant("a", "kernel", "A 2020, arXiv:2006.16236, eq. 5"),
            self.variant("b", "kernel", "B 1989, IEEE"),
            self.variant("c", "gated", "C 2024, arXiv:2312.06635"),
        ]).splitlines()
        self.assertEqual(told[2:], ["| kernel | [`a`](https://arxiv.org/abs/2006.16236), `b` |",
                                    "| gated | [`c`](https://arxiv.org/abs/2312.06635) |"])

    def test_every_variant_is_a_line(self):
        told = catalog.every([
            self.variant("a", "kernel", "A 2020, arXiv:2006.16236, eq. 5", causal=True, decode=True),
            self.variant("b", "kernel", "B 1989, IEEE", cross=True),
        ]).splitlines()
        self.assertEqual(told[2:], [
            "| kernel | `a` | s | [A 2020](https://arxiv.org/abs/2006.16236), eq. 5 | causal, decodes | c |",
            "| | `b` | s | B 1989, IEEE | cross | c |"])


class Made(unittest.TestCase):
    """What results/reference holds beside rows is what the commands make of the rows."""

    def test_the_report_tells_what_its_rows_tell(self):
        reference = ROOT / "results" / "reference"
        page = (reference / "standard.html").read_text(encoding="utf-8")
        told = re.findall("<li>(.*?)</li>", page.partition('id="summary"')[2])
        made = captured.sentences(reference / "standard.jsonl").splitlines()
        self.assertEqual([html.unescape(re.sub("</?code>", "`", s)) for s in told if "trained on" not in s and "measurements" not in s],
                         [s.removeprefix("- ") for s in made if "measurements" not in s])  # its other rows add to these

    def test_no_picture_or_page_of_reference_rows_has_a_setting_that_was_not_learned(self):
        for name in ("quick", "standard"):  # drawn and told whole
            rows = published(read_rows([ROOT / "results" / "reference" / f"{name}.jsonl"]), without_control=False)
            self.assertEqual(rows.left_out, (), name)
        survey = published(read_rows([ROOT / "results" / "reference" / "survey.jsonl"]), without_control=False)
        drawn = (ROOT / "results" / "reference" / "survey-plots" / "heat-scores.csv").read_text(encoding="utf-8")
        columns = {line.split(",")[1] for line in drawn.splitlines()[1:]}
        self.assertEqual(columns, {cell.task for cell in survey.of("accuracy")})

    def test_the_figure_of_readme_shows_its_rows(self):
        rows = read_rows([ROOT / "results" / "reference" / "quick.jsonl"])
        (drawn,) = overview(rows, Styles(rows))
        held = (ROOT / "results" / "reference" / "plots" / "overview.csv").read_text(encoding="utf-8")
        self.assertEqual(noted(drawn).to_csv(index=False, float_format="%.9g", lineterminator="\n"), held)


def one_cell(**metrics):
    """The run line and a speed cell of the reference rows, with these metrics, forward."""
    rows = ROOT / "results" / "reference" / "quick.jsonl"
    lines = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    head = next(line for line in lines if line["kind"] == "run")
    cell = next(
        line
        for line in lines
        if line["kind"] == "cell" and line["measure"] == "speed" and line["status"] == "ok"
    )
    for line in (head, cell):
        line.pop("checksum", None)
    cell["metrics"].update(metrics)
    cell["axes"]["mode"] = "forward"
    return head, cell


def trained(scores, cut=()):
    """Rows of one task in which these variants have these scores, one a seed; the trainings of `cut` were stopped by their steps."""
    path = ROOT / "results" / "reference" / "quick.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    head = next(line for line in lines if line["kind"] == "run")
    head.pop("checksum", None)
    cell = next(x for x in lines if x["kind"] == "cell" and x["measure"] == "accuracy" and x["status"] == "ok" and x["task"]["name"] == "mqar")
    cell.pop("checksum", None)
    made = [head]
    for name, tests in scores.items():
        for seed, test in enumerate(tests):
            one = json.loads(json.dumps(cell))
            plain, _, layer = name.partition("[block=paper")
            one.update(variant={"name": plain, "params": {"block": "paper"} if layer else {}}, cell=f"{len(made):016x}")
            one["axes"]["seed"] = seed
            one["metrics"]["test"] = test
            one["metrics"]["ended_by"] = "steps" if name in cut else "target"
            made.append(one)
    return "".join(json.dumps(line) + "\n" for line in made)


class ScoresByFamily(unittest.TestCase):
    def printed(self, table, scores, cut=()):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text(trained(scores, cut), encoding="utf-8")
            return table(path).splitlines()

    def test_a_variant_is_a_line_below_its_family(self):
        told = self.printed(by_family.table, {"linear+full": [1.0], "linear": [0.25, 0.75], "performer": [0.5, 0.5], "full": [1.0]}, ["linear"])
        lines = [line.strip("| ").split(" | ") for line in told[2:] if "`full`" not in line]
        self.assertEqual([line[:2] for line in lines[:1]], [["kernel", "`performer`"]])
        self.assertTrue(lines[1][0].startswith("`linear`") and lines[1][1].startswith("0.50† (0.25 to 0.75)"))
        self.assertEqual(lines[2][:2], ["stacks", "`linear+full`"])
        self.assertTrue(told[0].endswith("| parameters over those of `full` |"), told[0])
        self.assertEqual(lines[2][3], "1.00")

    def test_settings_of_training_are_no_seeds(self):
        head, *cells = trained({"full": [0.9, 1.0]}).splitlines()
        rotary = json.loads(cells[1])
        rotary["training"]["positions"] = "none"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text("\n".join([head, cells[0], json.dumps(rotary)]) + "\n", encoding="utf-8")
            told = by_family.table(path).splitlines()[2:]
            rotary["metrics"]["parameters"] *= 2
            path.write_text("\n".join([head, cells[0], json.dumps(rotary)]) + "\n", encoding="utf-8")
            of_two = by_family.table(path).splitlines()
        self.assertTrue(of_two[0].endswith("| parameters over those of the smallest `full` |"), of_two[0])
        self.assertEqual(sorted(line.strip("| ").split(" | ")[-1] for line in of_two[2:4]), ["1.00", "2.00"])
        scores = {"none" if "positions=none" in line else "learned": line.split(" | ")[2][:4] for line in told[:2]}
        self.assertEqual(scores, {"learned": "0.90", "none": "1.00"})

    def test_pairs_whose_intervals_separate_are_counted(self):
        told = self.printed(orders.orders, {
            "conv[kernel=4]+deltanet": [0.9, 0.89], "conv[kernel=4]+kda": [0.4, 0.41], "conv[kernel=4]+gla": [0.6, 0.61],
            "conv[kernel=4]+mamba2": [0.3, 0.9], "gla": [0.25], "full": [1.0],
        })  # fmt: skip
        delta = next(line for line in told if line.startswith("| delta rules"))
        self.assertIn("`conv+kda` 0.41 | `conv+gla` 0.60, `conv+mamba2` 0.60 | 1 of 4 | 1 | 2 | 0 |", delta)
        self.assertFalse(any("parity" in line for line in told))
        self.assertTrue(told[0].endswith("| undecided | cut off or lost |"), told[0])

    def test_pairs_are_judged_by_the_difference_as_ranks_are(self):
        """Intervals that overlap do not hide a difference; those of one seed show none."""
        near = {"conv[kernel=4]+deltanet": [0.90, 0.88, 0.86], "conv[kernel=4]+gla": [0.83, 0.81, 0.79], "full": [1.0]}
        for scores, counts in ((near, "1 of 1 | 0 | 0 | 0"), ({name: own[:1] for name, own in near.items()}, "0 of 1 | 0 | 1 | 0")):
            delta = next(line for line in self.printed(orders.orders, scores) if line.startswith("| delta rules"))
            self.assertTrue(delta.endswith(f"| {counts} |"), delta)

    def test_a_training_that_was_cut_off_decides_no_pair(self):
        scores = {"conv[kernel=4]+deltanet": [0.9, 0.89], "conv[kernel=4]+gla": [0.6, 0.61], "conv[kernel=4]+mamba2": [0.4, 0.41], "full": [1.0]}
        for cut, counts in ((), "2 of 2 | 0 | 0 | 0"), (("conv[kernel=4]+gla",), "1 of 2 | 0 | 0 | 1"), (("conv[kernel=4]+deltanet",), "0 of 2 | 0 | 0 | 2"):
            delta = next(line for line in self.printed(orders.orders, scores, cut) if line.startswith("| delta rules"))
            self.assertTrue(delta.endswith(f"| {counts} |"), (cut, delta))
            self.assertEqual("`conv+gla` 0.60†" in delta, "conv[kernel=4]+gla" in cut)

    def test_a_layer_is_another_side_than_its_mixer(self):
        told = self.printed(orders.orders, {
            "gla[block=paper]": [0.9, 0.901], "mamba2[block=paper]": [0.5, 0.501], "gla": [0.6, 0.601], "full": [1.0],
        })  # fmt: skip
        around = next(line for line in told if line.startswith("| what stands around it"))
        self.assertIn("| `gla[block=paper]` 0.90, `mamba2[block=paper]` 0.50 | `gla` 0.60 | 1 of 1 | 0 | 0 | 0 |", around, "each layer beside its own mixer")
        exact = next(line for line in told if line.startswith("| exact attention"))
        self.assertNotIn("block=paper", exact)

    def test_a_layer_stands_beside_its_mixer(self):
        told = self.printed(by_block.table, {"full": [1.0], "gla": [0.25, 0.75], "gla[block=paper]": [0.5, 0.5], "hyena": [0.5]})
        heads = [word.strip() for word in told[0].strip("|").split("|")]
        self.assertEqual(heads, ["variant", "`mqar`: mixer", "layer", "parameters: mixer", "layer"])
        lines = {line.split("|")[1].strip(): [word.strip()[:4] for word in line.split("|")[2:4]] for line in told[2:]}
        self.assertEqual(lines["`gla`"], ["0.50", "0.50"])
        self.assertEqual(lines["`hyena`"], ["0.50", "—"])
        self.assertEqual(lines["`full`"], ["1.00", "—"])
        self.assertIn("best shortcut", lines)

    def test_learning_is_told_of_mixers_and_of_layers(self):
        told = self.printed(by_block.learning, {"full": [1.0], "gla": [0.25, 0.75], "gla[block=paper]": [1.0, 1.0]})
        heads = [word.strip() for word in told[0].strip("|").split("|")]
        self.assertEqual(heads, ["variant", "`mqar`: seeds", "steps", "learning rates"])
        seeds = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in told[2:] if line.startswith("|")}
        self.assertEqual(seeds, {"`full`": "1 of 1 (0.03 to 1.00)", "`gla`": "1 of 2 (0.01 to 0.99)", "`gla[block=paper]`": "2 of 2 (0.16 to 1.00)"})
        self.assertEqual(told[-1], "Some seeds learned and others did not, of fewer than 8: on `mqar` `gla`. Their means say little.")

    def test_learning_of_many_tasks_is_a_line_a_task_and_variant(self):
        told = by_block._by_task({("gla", task): Learning(2, 1, (0.01, 0.99), (700.0, float("inf")), 900, (), ()) for task in ("copy", "mqar")}).splitlines()
        self.assertEqual(told[2:4], ["| `copy` | `gla` | 1 of 2 (0.01 to 0.99) | 700 (700 to > 900) | |", "| `mqar` | `gla` | 1 of 2 (0.01 to 0.99) | 700 (700 to > 900) | |"])
        self.assertIn("on `copy` `gla`; on `mqar` `gla`", told[-1])

    def test_a_score_at_the_shortcut_confirms_no_order(self):
        shortcut = json.loads(trained({"full": [0.1]}).splitlines()[1])["metrics"]["shortcuts"]
        best = max(shortcut.values())
        at = {"conv[kernel=4]+kda": [best - 0.001, best], "conv[kernel=4]+gla": [0.0, 0.001], "full": [1.0]}
        told = self.printed(orders.orders, at)
        self.assertTrue(any(line.endswith("| 0 of 1 | 0 | 1 | 0 |") for line in told), told)


    def test_a_setting_that_full_has_not_learned_is_no_column(self):
        told = self.printed(by_family.table, {"full": [0.1], "linear": [1.0]})
        self.assertFalse(any("linear" in line for line in told), told)
        self.assertRegex(told[-1], "^Left out, for the control has not learned them: mqar: full scores 0.100, and reached the bar of")
        self.assertIn("mqar: no row of full.", self.printed(by_family.table, {"linear": [1.0]})[-1])

    def test_settings_of_one_task_that_are_left_out_are_told_apart(self):
        head, *cells = trained({"full": [0.1]}).splitlines()
        longer = json.loads(cells[0])
        longer["cell"] = "f" * 16
        longer["training"]["steps"] += 900
        longer["task"]["params"]["pairs"] = 8
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text("\n".join([head, cells[0], json.dumps(longer)]) + "\n", encoding="utf-8")
            told = by_family.left_out(published(read_rows([path]), without_control=False))
        of = json.loads(cells[0])
        self.assertIn(f"mqar (pairs={of['task']['params']['pairs']}, steps={of['training']['steps']}): full scores 0.100", told)
        self.assertIn(f"mqar (pairs=8, steps={of['training']['steps'] + 900}): full scores 0.100", told)


class TablesOfRows(unittest.TestCase):
    def printed(self, table, head, cell, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            path.write_text(json.dumps(head) + "\n" + json.dumps(cell) + "\n", encoding="utf-8")
            return table(path, *more).splitlines()

    def test_shares_have_a_line_a_variant_and_mode_and_a_column_a_length(self):
        head, cell = one_cell(peak_fraction=0.4)
        cell["metrics"]["time_s"].update(median=0.002, min=0.001)
        self.assertEqual(
            self.printed(passes.shares, head, cell),
            [
                f"| variant | | {cell['axes']['length']} |",
                "|---|---|---|",
                f"| `{cell['variant']['name']}` | forward | 2, 0.40 (0.80) |",
            ],
        )

    def test_a_breakdown_names_the_largest_part_first_and_other_last(self):
        parts = {"packing": 0.05, "products": 0.7, "masks": 0.01, "other": 0.24}
        head, cell = one_cell(breakdown={"shares": parts})
        self.assertEqual(
            self.printed(passes.breakdown, head, cell, cell["axes"]["length"]),
            [
                "| variant | forward | train |",
                "|---|---|---|",
                f"| `{cell['variant']['name']}` | products 70, packing 5, other 24 | — |",
            ],
        )

    def test_crossings_tell_where_a_variant_overtakes_and_what_its_choice_costs(self):
        times = {"full": (1, 2, 8), "topk": (3, 2.5, 4)}
        path, _, _ = self.rows(
            *(("speed", {"length": 64 << i, "causal": True}, {"median": time, "variant": name, "breakdown": {"shares": {"selection": 0.25}}})
              for name, of in times.items() for i, time in enumerate(of))
        )  # fmt: skip
        (line,) = passes.crossings(path, 256).splitlines()[2:]
        self.assertTrue(line.startswith("| forward, causal | `topk` | 152 |"), line)
        self.assertTrue(line.endswith("| 256 | 0.50 | 25 |"), line)

    def rows(self, *settings):
        """A file of the run line and, for each setting, one cell with these axes, measure and metrics; medians are in seconds."""
        lines = []
        for number, (measure, axes, metrics) in enumerate(settings):
            head, cell = one_cell()
            cell.update(measure=measure, cell=f"{number:016x}", axes={**cell["axes"], "heads": 1, "head_dim": 64, "threads": 1, **axes})
            cell["metrics"].update({"peak_fraction": 0.5, **metrics})
            if "variant" in metrics:
                cell["variant"] = {"name": metrics["variant"], "params": {}}
            if "median" in metrics:
                time = metrics["median"]
                cell["metrics"]["time_s"].update(median=time, min=time, ci_low=time, ci_high=time)
                cell["samples"] = [time] * 9
            lines = lines or [head]
            lines.append(cell)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name, "rows.jsonl")
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        name = lines[1]["variant"]["name"]
        return path, name, head["environment"]["calibration"]

    def test_other_settings_stand_beside_the_usual_one(self):
        path, name, _ = self.rows(
            ("speed", {"length": 64}, {"median": 0.002}),
            ("speed", {"length": 64, "threads": 2}, {"median": 0.001}),
            ("speed", {"length": 64, "dtype": "bfloat16", "mode": "train"}, {"median": 0.003, "peak_fraction": None}),  # alone
            ("speed", {"length": 128, "heads": 8}, {"median": 0.5}),
        )
        self.assertEqual(
            passes.settings(path, 64).splitlines()[2:],
            [f"| `{name}` | `dtype=bfloat16` | — | 3 |", f"| `{name}` | `threads=2` | 1, 0.50 (0.50), ×0.5 | — |"],
        )

    def test_growth_is_the_factor_of_each_doubling(self):
        path, name, _ = self.rows(
            *(("speed", {"length": n}, {"median": s}) for n, s in ((32, 9), (64, 1), (128, 2.5), (256, 5))),
            *(("memory", {"length": n}, {"workspace_bytes": 1024 * n, "peak_bytes": 1}) for n in (64, 256)),
        )
        self.assertEqual(
            passes.growth(path, 64).splitlines(),
            ["| variant | 64 to 128 | 128 to 256 | workspace at 64 | workspace at 256 |", "|---|---|---|---|---|",
             f"| `{name}` | 2.50 | 2.00 | 64 KiB | 256 KiB |"],
        )  # fmt: skip

    def test_decoding_is_in_microseconds_beside_what_is_kept(self):
        path, name, _ = self.rows(
            ("speed", {"length": 64, "mode": "decode"}, {"median": 2e-6}),
            ("speed", {"length": 256, "mode": "decode"}, {"median": 7532e-6}),
            ("speed", {"length": 512}, {"median": 1}),
            ("memory", {"length": 256, "mode": "decode"}, {"state_bytes": 2048, "peak_bytes": 1}),
        )
        self.assertEqual(
            passes.decoding(path).splitlines()[::2], ["| variant | 64 | 256 | state at 256 |", f"| `{name}` | 2 | 7,530 | 2 KiB |"]
        )

    def test_floors_are_of_one_core(self):
        path, name, found = self.rows(
            *(("speed", {"length": 64, "mode": mode}, {"median": 1, "flops": f * 1e6, "bytes": 1e6}) for mode, f in (("forward", 4), ("train", 10)))
        )
        arithmetic = [f"{f * 1e9 / found['fma_flops_per_s_one']:.3g}" for f in (4, 10)]
        memory = f"{1e9 / found['copy_bytes_per_s_one']:.2g}"
        self.assertEqual(
            passes.floors(path, 64, (name,)).splitlines()[-1],
            f"| `{name}` | 4 | {arithmetic[0]} | 1 | {memory} | 10 | {arithmetic[1]} |",
        )
        self.assertIn(f"**{found['fma_flops_per_s_one'] / 1e9:.0f} GFLOP/s**", passes.machine(path))
