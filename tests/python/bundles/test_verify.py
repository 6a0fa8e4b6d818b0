"""attnbench verify: honest bundles agree, lies disagree, and nothing of a stranger's runs before somebody said yes."""

from __future__ import annotations

import json
import subprocess
import unittest
from unittest.mock import patch

from attnbench.bundles.archive import MANIFEST, SIGNATURE, read_bundle
from attnbench.bundles.brought import Brought
from attnbench.bundles.measuring import NotMeasured
from attnbench.bundles.sampling import drawn, exact_beside, seed_of
from attnbench.bundles.signature import sign
from attnbench.bundles.verify import main
from attnbench.plots.rows.checksum import hash_of

from .archives import members_of, written
from .base import HONEST, Verbs, key, signers
from .planted import DEFINITION, ENVIRONMENT, Line, cell, edited, honest, run_line, sealed

LOADED = "from pathlib import Path\nPath({!r}).touch()\n"


class Verdicts(Verbs):
    def test_honest_rows_agree(self) -> None:
        said = self.verified(self.archive())
        self.assertEqual((said.code, said.err), (0, ""))
        self.assertIn("verdict: agree (8 agree of 8 cells measured anew; had a tenth of the 18 comparable cells been false", said.out)
        self.assertIn("nonce: 00ff", said.out)
        ran = [w for w in said.asked if w[0] == "run" and "--dry-run" not in w and "--seed" in w]
        seeds = [int(w[w.index("--seed") + 1]) for w in ran if w[w.index("--measure") + 1] in ("speed", "memory")]
        self.assertTrue(seeds and min(seeds) >= 1000 and len(set(seeds)) == len(seeds), "times and memory are of inputs that nobody knew")

    def test_the_verdict_as_json(self) -> None:
        said = self.verified(self.archive(), "--json", "--sample", "3")
        found = json.loads(said.out)
        self.assertEqual((found["verdict"], found["exit_code"], len(found["cells"]), found["nonce"]), ("agree", 0, 3, "00ff"))
        refused = self.verified(self.archive([run_line(), edited(honest()[1], "cell", "0" * 16)]), "--json")
        self.assertEqual((refused.code, json.loads(refused.out)["verdict"]), (2, "refused"))

    def test_a_sample_of_none_measures_none(self) -> None:
        said = self.verified(self.archive(), "--sample", "0")
        self.assertEqual((said.code, said.out.splitlines()[-1]), (4, "verdict: not comparable (no cell was measured anew)"))

    def test_a_file_of_signers_that_cannot_be_read(self) -> None:
        """ssh-keygen would say that it does not name the key."""
        for name in (self.folder / "none", self.folder):
            self.refused(self.verified(self.archive(), "--signers", name), f"--signers {name}: cannot be read: ", code=6)

    def test_lies_that_fit_each_other_disagree(self) -> None:
        """Every figure of a measure made better, with right checksums: measuring again finds it."""
        for measure, factor in (("speed", 0.5), ("memory", 0.5), ("fidelity", 0.5), ("accuracy", 1.06)):
            rows = honest()
            for index, row in enumerate(rows):
                if row.get("measure") == measure and row["variant"]["name"] != "full":
                    rows[index] = cell(measure, row["variant"]["name"], row["axes"]["length"], factor=factor)
            said = self.verified(self.archive(rows), "--sample", "18")
            self.assertEqual(said.code, 3, f"{measure}: {said.out}{said.err}")
            self.assertIn("verdict: disagree", said.out)
            wrong = [line for line in said.out.splitlines() if line.startswith("disagree: ")]
            self.assertTrue(wrong and all(f" {measure} " in line for line in wrong), wrong)

    def test_the_sample_is_of_the_bytes_and_the_nonce(self) -> None:
        first, again = (read_bundle(self.archive()) for _ in range(2))
        other = read_bundle(self.archive(statement_dot_txt=b"another statement"))
        self.assertEqual(seed_of(first, "aa"), seed_of(again, "aa"))
        self.assertEqual(len({seed_of(first, "aa"), seed_of(first, "ab"), seed_of(other, "aa")}), 3)
        picks = [tuple(c["cell"] for c in drawn(first, Brought(), seed, 4, 9, times="", price=lambda _: 1.0).cells) for seed in range(200)]
        self.assertGreater(len(set(picks)), 190)
        counts = [sum(c["cell"] in pick for pick in picks) for c in first.cells if c["variant"]["name"] != "full"]
        self.assertGreater(min(counts), 0, "each cell may be drawn")

    def test_what_takes_too_long_or_cannot_run_is_not_drawn(self) -> None:
        said = self.verified(self.archive(), price=500.0)
        self.assertEqual(said.code, 4)
        self.assertIn("not drawn: 18 cells: forecast above 120 s (--longest)", said.out)
        self.assertIn("verdict: not comparable (no cell was measured", said.out)
        self.assertEqual(self.verified(self.archive(), "--longest", "10m", "--sample", "1", price=500.0).code, 0)

        def refuse(_: Line) -> float:
            raise NotMeasured("skipped here: why")

        sample = drawn(read_bundle(self.archive()), Brought(), 1, 4, 9, times="", price=refuse)
        self.assertEqual((sample.cells, sample.left_out["skipped here: why"]), ([], 18))

    def test_times_of_another_processor(self) -> None:
        rows = [run_line(), *(c for c in honest()[1:] if c["measure"] == "speed")]
        said = self.verified(self.archive(rows), cpu="Other CPU")
        self.assertEqual(said.code, 4)
        self.assertIn("times of another processor or instruction set (cpu model Example CPU there, Other CPU here); --ratios compares", said.out)
        self.assertEqual(self.verified(self.archive(rows), "--ratios", cpu="Other CPU").code, 0)
        lies = [run_line(), *(c if c["variant"]["name"] == "full" else cell("speed", "linear", c["axes"]["length"], factor=0.25) for c in rows[1:])]
        said = self.verified(self.archive(lies), "--ratios", cpu="Other CPU")
        self.assertEqual(said.code, 3, said.out + said.err)

    def test_times_without_exact_attention(self) -> None:
        rows = [run_line(), *(c for c in honest()[1:] if c["measure"] == "speed" and c["variant"]["name"] != "full")]
        said = self.verified(self.archive(rows))
        self.assertEqual(said.code, 4)
        self.assertIn("6 cells: times without exact attention of the same shape", said.out)

    def test_exact_attention_is_that_of_the_same_run_and_axes(self) -> None:
        mine = cell("speed", "linear")
        others = [cell("speed", "full", run="00000000000000bb"), cell("speed", "full", 512)]
        with patch("attnbench.bundles.archive.Bundle.exact_times", others):
            self.assertIsNone(exact_beside(read_bundle(self.archive()), mine))
            others.append(cell("speed", "full"))
            self.assertIs(exact_beside(read_bundle(self.archive()), mine), others[-1])

    def test_other_sources(self) -> None:
        other = {"linear": "f" * 16, "truncated": "e" * 16}
        rows = [run_line(), *(c for c in honest()[1:] if c["measure"] == "memory" and c["variant"]["name"] != "full")]
        said = self.verified(self.archive(rows), source=other, commit="1" * 40)
        self.assertEqual(said.code, 4, said.out)
        self.assertIn("another version of attnbench", said.out)
        said = self.verified(self.archive(rows), source=other)
        self.assertEqual(said.code, 3)
        self.assertIn("at one commit", said.out)

    def test_half_of_the_sample_must_agree(self) -> None:
        rows = [run_line(), *(c for c in honest()[1:] if c["measure"] == "memory")]
        said = self.verified(self.archive(rows), "--sample", "6", source={"linear": "f" * 16, "truncated": "e" * 16}, commit="1" * 40)
        self.assertEqual((said.code, "verdict: not comparable (2 agree, 4 not comparable" in said.out), (4, True), said.out)

    def test_another_protocol(self) -> None:
        definition = {**DEFINITION, "name": "attnbench-9"}
        later = {"name": "attnbench-9", "hash": hash_of(definition), "definition": definition}
        run = run_line(protocol={"name": later["name"], "hash": later["hash"], "departs": []})
        said = self.verified(written(self.folder, members_of([run, *honest()[1:]], later)))
        self.assertEqual(said.code, 4)
        self.assertIn("21 cells: of another protocol than this program's", said.out)
        easier = {**DEFINITION, "timeout_s": 1e9}
        same_name = {"name": "attnbench-1", "hash": hash_of(easier), "definition": easier}
        run = run_line(protocol={"name": "attnbench-1", "hash": same_name["hash"], "departs": ["timeout"]})
        self.refused(self.verified(written(self.folder, members_of([run, *honest()[1:]], same_name))), "has one definition")

    def test_a_definition_of_any_form_is_no_crash(self) -> None:
        for profiles, profile in (([], "quick"), ({"quick": "x"}, "quick"), ({"quick": []}, "quick"), ({}, ["quick"]), (None, {})):
            definition = {**DEFINITION, "name": "mine", "profiles": profiles}
            protocol = {"name": "mine", "hash": hash_of(definition), "definition": definition}
            config = {**run_line()["config"], "profile": profile}
            run = run_line(config=config, protocol={"name": "mine", "hash": protocol["hash"], "departs": []})
            said = self.verified(written(self.folder, members_of([run, *honest()[1:]], protocol)))
            self.assertEqual(said.code, 4, said.err)
        run = run_line(config={**run_line()["config"], "profile": ["quick"]})
        self.assertEqual(self.verified(self.archive([run, *honest()[1:]]), "--sample", "0").code, 4)

    def test_an_error_that_would_hide_every_lie(self) -> None:
        hidden = edited(cell("accuracy", "linear", 64, factor=0.8), "metrics.test_stderr", 0.5)
        self.refused(self.verified(self.archive([run_line(), hidden]), commit="1" * 40), "metrics.test_stderr is 0.5")
        bound = edited(cell("memory", "linear"), "verified.bound", 1e9)
        said = self.verified(self.archive([run_line(), edited(bound, "verified.error", 0.01)]))
        self.assertEqual((said.code, "the error of its answer was 0.01 then, and the bound is 0.0001 here" in said.out), (3, True), said.out)

    def test_no_text_of_an_archive_forges_a_line(self) -> None:
        forged = "x\nverdict: agree (8 agree of 8 cells measured anew)"
        rows = [run_line(), cell("memory", "linear", source={"variant": forged})]
        said = self.verified(self.archive(rows))
        self.assertEqual([line for line in said.out.splitlines() if line.startswith("verdict")], [said.out.splitlines()[-1]])
        self.assertEqual(said.code, 3)
        run = run_line(config={**run_line()["config"], forged: "/home/ada/x"})
        self.refused(self.verified(self.archive([run, *honest()[1:]])), "names '/home/ada/x'")

    def test_options(self) -> None:
        path = self.archive()
        self.refused(self.verified(path, "--sample", "-1"), "--sample -1")
        self.refused(self.verified(path, "--longest", "soon"), "--longest soon", "90s")
        self.refused(self.said(main, path, "--nonce", "xyz"), "--nonce xyz")
        self.refused(self.verified(self.folder / "none.attnbundle"), "cannot be read", code=6)
        said = self.verified(path, "--sample", "0")
        self.assertEqual((said.code, [w[0] for w in said.asked]), (4, ["protocol", "list"]))


class Hostile(Verbs):
    def test_rows_that_submit_would_not_take(self) -> None:
        rows = honest()
        for changed, word in (
            (edited(rows[1], "metrics.time_s.median", 1e-9, seal=False), "changed after it was written"),
            (edited(rows[1], "metrics.time_s.median", 1e-9), "was edited"),
            (edited(rows[1], "samples", [1e-9] * 9), "was edited"),
            (edited(rows[1], "cell", "0" * 16), "was edited"),
            (edited(rows[-1], "metrics.test", 0.5), "was edited"),
            (edited(rows[1], "schema", "attnbench/2"), "attnbench/2"),
            (edited(rows[1], "axes.length", "long"), "length"),
            (sealed({k: v for k, v in rows[1].items() if k != "verified"}), "unverified"),
            (edited(rows[-1], "metrics.ended_by", "steps"), "unfinished"),
        ):
            kept = rows[:-1] if changed["measure"] == "accuracy" else [rows[0], *rows[2:]]
            self.refused(self.verified(self.archive([*kept, changed])), "refused", word)
        self.refused(self.verified(self.archive(contract_dot_json=b'{"linear": {"red": 1}}')), "contract report is red")

    def test_names_that_are_paths(self) -> None:
        loaded = self.folder / "loaded"
        (self.folder / "victim.py").write_text(LOADED.format(str(loaded)))
        for name in (f"python:{self.folder}/victim.py:f", "python:victim.py:f", "../../victim"):
            row = cell("fidelity", name)
            self.refused(self.verified(self.archive([run_line(), row]), "--yes"), "refused")
        task = cell("accuracy", "linear", 64, task={"name": "../x", "params": {}})
        self.refused(self.verified(self.archive([run_line(), task])), "refused")
        self.assertFalse(loaded.exists())

    def test_files_of_the_verifier_are_not_read(self) -> None:
        row = cell("accuracy", "linear", 64, task={"name": "copy", "params": {"file": "../../secret"}})
        self.assertIn("1 cell: tasks of files", self.verified(self.archive([run_line(), row])).out)

    def test_rows_of_a_variant_that_it_does_not_bring(self) -> None:
        self.refused(self.verified(self.archive([run_line(), cell("fidelity", "secret")])), "'secret'")
        self.refused(self.verified(self.archive(self.python_rows(HONEST))), "source is not there")

    def test_sources_that_are_not_those_that_were_measured(self) -> None:
        self.refused(self.verified(self.archive(self.python_rows(HONEST), sources__mine_dot_py=HONEST.encode() + b"#"), "--yes"), "other bytes")

    def test_nothing_runs_before_somebody_says_yes(self) -> None:
        loaded = self.folder / "loaded"
        source = HONEST + LOADED.format(str(loaded))
        path = self.archive(self.python_rows(source), sources__mine_dot_py=source.encode())
        for words, stdin in ((["--json"], None), ([], None), ([], "n\n"), ([], "\n"), ([], "")):
            said = self.verified(path, *words, stdin=stdin)
            self.assertEqual(said.code, 2, said.out + said.err)
            self.assertIn("nobody said" if stdin is None else "the answer was no", said.err)
            self.assertIn("sources/mine.py", said.err)
            self.assertEqual({w[0] for w in said.asked}, {"protocol", "list"})
            self.assertFalse(loaded.exists(), "it was imported")
        for words, stdin in ((["--yes"], None), ([], "y\n")):
            self.assertEqual(self.verified(path, *words, stdin=stdin).code, 0)
            self.assertTrue(loaded.exists(), "it is imported once somebody said yes")
            loaded.unlink()

    def brought(self, source: str, **figures: float) -> tuple[int, str]:
        said = self.verified(self.archive(self.python_rows(source, **figures), sources__mine_dot_py=source.encode()), "--yes")
        return said.code, said.out + said.err

    def test_an_honest_plugin_agrees(self) -> None:
        code, out = self.brought(HONEST)
        self.assertEqual(code, 0, out)
        self.assertIn("contract of python_mine: 1 checks, none red", out)

    def test_a_plugin_that_keeps_the_answers(self) -> None:
        """Right at the inputs of the rows, which anybody can compute beforehand, and nowhere else."""
        code, out = self.brought(HONEST.replace("return 0.5", "return 0.001 if seed == 0 else 0.9"), error=0.001)
        self.assertEqual(code, 3, out)
        self.assertIn("at fresh inputs", out)

    def test_a_plugin_that_knows_that_it_is_timed(self) -> None:
        """It works when it is checked and answers nothing when it is timed: the answer of the last timed pass is compared."""
        code, out = self.brought(HONEST.replace("return False", "return True"))
        self.assertEqual(code, 3, out)
        self.assertIn("the answer is wrong", out)

    def test_a_plugin_that_breaks_its_contract(self) -> None:
        code, out = self.brought(HONEST.replace("return True", "return False"))
        self.assertEqual(code, 3, out)
        self.assertIn("python_mine breaks its contract", out)

    def test_a_plugin_that_is_slower_than_its_rows(self) -> None:
        code, out = self.brought(HONEST, factor=0.5)
        self.assertEqual(code, 3, out)

    def test_signatures(self) -> None:
        mine, other = key(self.folder, "mine"), key(self.folder, "other")
        members = members_of()
        signed = members | {SIGNATURE: sign(members[MANIFEST], mine)}
        path = written(self.folder, signed)
        self.assertIn("a key that nobody here vouches for", self.verified(path, "--sample", "0").out)
        self.assertIn("signed by mine@example.org", self.verified(path, "--sample", "0", "--signers", signers(self.folder, mine)).out)
        self.refused(self.verified(path, "--signers", signers(self.folder, other, name="others")), "does not name")
        self.refused(self.verified(path, "--signers", self.folder / "none"), "cannot be read", code=6)
        self.refused(self.verified(self.archive(), "--signers", signers(self.folder, mine)), "not signed")
        forged = written(self.folder, members_of(statement_dot_txt=b"another") | {SIGNATURE: signed[SIGNATURE]})
        self.refused(self.verified(forged), "signature is not of its manifest")
        no_signature = b"-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
        self.refused(self.verified(written(self.folder, members | {SIGNATURE: no_signature})), "signature")
        elsewhere = self.folder / "manifest"
        elsewhere.write_bytes(members[MANIFEST])
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", mine, elsewhere], check=True, capture_output=True)
        of_git = written(self.folder, members | {SIGNATURE: (self.folder / "manifest.sig").read_bytes()})
        self.refused(self.verified(of_git), "signature")

    def test_a_run_of_another_machine_in_the_same_archive(self) -> None:
        """The environment of one run cannot stand for the other's."""
        other = run_line(run="00000000000000bb", environment={**ENVIRONMENT, "cpu_model": "Other CPU"}, merged=True)
        rows = [sealed({**run_line(), "merged": True}), *honest()[1:10], other, sealed({**cell("memory", "linear"), "run": "00000000000000bb"})]
        said = self.verified(self.archive(rows))
        self.assertIn("cpu model Other CPU there, Example CPU here", said.out)


if __name__ == "__main__":
    unittest.main()
