"""`--test-with prompt=N` by the real program: learned weights scored behind a prompt, what has no score, wrong use."""

from __future__ import annotations

from ..faults import BUILT, FaultCase, read_rows


@BUILT
class PromptScores(FaultCase):
    WORDS = ["-v", "full", "-t", "mqar[preset=small]", "--measure", "accuracy"]
    SHORT = ["--train", "steps=20,batch=16,heads=4,eval_every=20,test_examples=64,validation_examples=32", "-q"]

    def test_a_row_has_a_score_behind_each_prompt_that_holds_no_label(self) -> None:
        asked = "prompt=8;evict=[snapkv,h2o],budget=8,when=prompt,prompt=[8,9];kv_dtype=float32,prompt=8"
        done = self.run_program("run", *self.WORDS, *self.SHORT, "--test-with", asked, "-o", self.rows_file, at_once=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = read_rows(self.rows_file)[1:]
        entries = row["metrics"]["by_params"]
        self.assertEqual([entry["params"] for entry in entries], row["test_with"])
        told = [(entry["params"].get("prompt"), entry["params"]["evict"], entry["params"]["when"]) for entry in entries]
        behind = [(8, "snapkv", "always"), (9, "snapkv", "always"), (8, "h2o", "prompt"), (9, "h2o", "prompt")]
        self.assertEqual(told, [(8, "none", "always"), *behind, (8, "none", "always")])
        exact = row["metrics"]["test"]
        whole = [True, True, False, True, False, True]  # a budget of eight keeps all of eight
        self.assertEqual([entry["test"] == exact for entry in entries], whole)
        for entry in (entries[2], entries[4]):
            self.assertIsNone(entry["test"])
            self.assertIn("the first stands at position 8, counted from 0, inside prompt=9; at most prompt=8", entry["reason"])
        again = self.run_program("repro", self.rows_file, row["cell"], "--print")
        self.assertIn("budget=8,evict=snapkv,kernel=tiled,prompt=8", again.stdout)

    def test_wrong_use_is_one_line(self) -> None:
        for asked, said in (
            ("prompt=0", "prompt=0 is not valid; expected int in 1.."),
            ("prompt=8.5", "prompt=8.5 is not valid; expected int in 1.."),
            ("evict=snapkv,budget=4", "--test-with 'prompt=N' scores behind one"),
            ("evict=snapkv,budget=4,prompt=64", "prompt=64 leaves no step of the 64 positions of mqar; expected 1 to 63"),
            ("evict=snapkv,budget=4,when=prompt,prompt=8", "when=prompt has no effect here"),
            ("evict=h2o,budget=4,prompt=8,kv_dtype=int8", "a decoder that forgets caches in float32, not in int8"),
        ):
            done = self.run_program("run", *self.WORDS, "--test-with", asked, "-o", self.rows_file)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse(self.rows_file.exists())
