"""What `attnbench list` shows: all of the catalogues, and variants by family, trait and year."""

import json
import unittest

from ..faults import BUILT
from .test_cli import attnbench


@BUILT
class Listed(unittest.TestCase):
    def test_variants_are_found_by_family_trait_and_year(self):
        def found(*options):
            return json.loads(attnbench("list", "--json", *options).stdout)["variants"]

        every = json.loads(attnbench("list", "--json").stdout)["variants"]
        self.assertEqual([v["name"] for v in every if v["year"] is None], [])
        gated = found("--family", "gated", "--family", "control")
        self.assertEqual({v["family"] for v in gated}, {"gated", "control"})
        self.assertEqual(len(gated), sum(v["family"] in ("gated", "control") for v in every))
        both = {v["name"] for v in every if v["traits"]["cross"] and v["traits"]["decode"]}
        self.assertEqual({v["name"] for v in found("--trait", "cross,decode")}, both)
        self.assertEqual({v["name"] for v in found("--trait", "cross", "--trait", "decode")}, both)
        of_2020 = {v["name"] for v in found("--year", "2020")}
        self.assertIn("linformer", of_2020)  # whose identifier has other digits, 2006.04768
        self.assertEqual(of_2020, {v["name"] for v in every if v["year"] == 2020})
        self.assertEqual(len(found("--year", "1900:2999")), len(every))
        self.assertEqual([v["name"] for v in found("--trait", "distance_bias")], ["full", "truncated"])
        self.assertEqual([v["name"] for v in found("--trait", "mimicry")], ["hedgehog"])
        none = attnbench("list", "--family", "exact", "--trait", "gated")
        self.assertEqual((none.returncode, none.stdout), (4, ""))
        self.assertIn("no variant", none.stderr)

    def test_list_and_info_of_everything(self):
        listed = json.loads(attnbench("list", "--json").stdout)
        names = [v["name"] for v in listed["variants"]]
        self.assertEqual(names[:5], ["full", "truncated", "linformer", "performer", "linear"])
        self.assertIn("quick", [p["name"] for p in listed["profiles"]])
        # Each task's sheet as text is on results/tasks.md, which test_tasks_page.py makes again.
        for name in [*names, "mqar"]:
            self.assertEqual(attnbench("info", name).returncode, 0, name)
        tasks = {t["name"]: [p["name"] for p in t["presets"]] for t in listed["tasks"]}
        for name in [*names, *tasks]:
            spec = f"{name}[preset=small]" if "small" in tasks.get(name, []) else name
            spec = "pathx[distractors=0,contour=6]" if name == "pathx" else spec  # at full size all take 25 s
            shown = json.loads(attnbench("info", spec, "--json").stdout)
            self.assertEqual(shown["name"], name)
            self.assertIn("params", shown)
            self.assertEqual("traits" in shown, name in names)  # of both, the variant's
            if name in names and name in tasks:
                self.assertEqual(shown["task"]["name"], name)
                self.assertIn("chance", shown["task"])
        for what in ("variants", "tasks", "profiles"):
            self.assertTrue(attnbench("list", what).stdout.startswith(what))
