"""The table of results/equivalence.md on what caches keep is of the versions and commits that scripts/dev/kept names, and each of its
rows is equal or says why it is not."""

from __future__ import annotations

import re
import unittest

from dev.kept.compared import BUDGETS, PROMPTS, STEP_BUDGETS, STEPS

from ..faults import ROOT

PAGE = (ROOT / "results" / "equivalence.md").read_text(encoding="utf-8")
KEPT = ROOT / "scripts" / "dev" / "kept"
KV_HEADS, HEADS = 2, 8
# Choices of a line: those of a head of keys at each prompt and budget, or step; of SnapKV's code and of quest those of a query head.
COUNTS = {"prompt": len(PROMPTS) * len(BUDGETS) * KV_HEADS, "steps": len(STEP_BUDGETS) * STEPS * KV_HEADS}
BY_QUERY = {"snapkv": len(PROMPTS) * len(BUDGETS) * HEADS, "quest": 3 * 50 * HEADS}


def choices(method: str, code: str, when: str) -> int:
    return COUNTS[when] if code.startswith("kvpress") else BY_QUERY.get(method, COUNTS[when])


class KeptPage(unittest.TestCase):
    def setUp(self) -> None:
        section = PAGE.partition("\n## Which positions a cache keeps\n")[2].partition("\n## ")[0]
        lines = [line for line in section.splitlines() if line.startswith("|")][2:]
        self.rows = [[entry.strip() for entry in line.strip("|").split("|")] for line in lines]
        self.section = section

    def test_every_method_with_published_code_is_there_at_prompts_or_steps(self) -> None:
        self.assertEqual({row[0].strip("`") for row in self.rows}, {"sinks", "h2o", "tova", "snapkv", "norm", "quest"})

    def test_what_differs_is_named_and_equal_without_it(self) -> None:
        for method, code, when, as_it_is, difference, without in self.rows:
            with self.subTest(method=method, code=code, when=when):
                every = choices(method.strip("`"), code, when)
                same = re.fullmatch(rf"(\d+) of {every}", as_it_is)
                self.assertTrue(same, as_it_is)
                self.assertEqual(without, f"{every} of {every}" if difference else "")
                self.assertEqual(int(same[1]) < every, bool(difference))

    def test_snapkv_is_compared_with_shared_keys_and_without(self) -> None:
        self.assertEqual([code.partition(", ")[2] for method, code, *_ in self.rows if "SnapKV " in code], ["4 query heads share keys", "no shared keys"])

    def test_the_counts_are_those_that_the_text_explains(self) -> None:
        self.assertEqual((COUNTS, BY_QUERY), ({"prompt": 24, "steps": 600}, {"snapkv": 96, "quest": 1200}))

    def test_versions_and_commits_are_those_that_are_compared(self) -> None:
        pinned = dict(line.split("==") for line in (ROOT / "scripts" / "requirements-kept.txt").read_text().splitlines() if "==" in line)
        for text in (f"transformers {pinned['transformers']}", f"PyTorch {pinned['torch']}", f"kvpress {pinned['kvpress']} "):
            self.assertIn(text, self.section)
        sources = re.findall(r'Source\("([^"]+)", "([0-9a-f]{7})"', (KEPT / "by_authors.py").read_text(encoding="utf-8"))
        self.assertEqual({" ".join(source) for source in sources}, {row[1].split(",")[0] for row in self.rows if "/" in row[1]})


if __name__ == "__main__":
    unittest.main()
