"""`attnbench sample` and the readers of Long Range Arena's released files, from outside.

Python writes the files that the program reads, and reads the files that the program writes, with
code of its own (struct, Pillow, a small evaluator).
"""

from __future__ import annotations

import json
import struct
import subprocess

from PIL import Image

from ..faults import BUILT, PROGRAM, InFolder

SPLITS = ("train", "validation", "test")
MEAN, DEVIATION = 0.48, 0.24  # of CIFAR-10's grey levels, as the task `image` scales them


def attnbench(*arguments, cwd=None):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=cwd)


def tokens_of(text: str) -> list[int]:
    return [byte + 1 for byte in text.encode()]


def evaluate(words: list[str]) -> int | list:
    """The value of a tree in the binary form `( ( ( [MAX 4 ) 3 ) ] )`; consumes `words`."""
    word = words.pop(0)
    if word == "(":
        left, right = evaluate(words), evaluate(words)
        assert words.pop(0) == ")"
        if right != "]":
            return [*left, right]
        operator, *values = left
        ordered = sorted(values)
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
        return {"[MIN": ordered[0], "[MAX": ordered[-1], "[MED": middle, "[SM": sum(values) % 10}[
            operator
        ]
    return int(word) if word.isdigit() else "]" if word == "]" else [word]


@BUILT
class Sample(InFolder):
    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, spec: str, split: str, count: int) -> list[dict]:
        done = attnbench("sample", spec, "--split", split, "--count", str(count))
        self.assertEqual((done.returncode, done.stderr), (0, ""), spec)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_slices_of_labels_are_printed_where_a_task_has_them(self) -> None:
        """Of a text of a folder: which bytes a reader finds by what it has read."""
        for i in range(10):
            self.write(f"texts/{i}", f"the cat {i} sat on the mat, the cat {i} sat on the mat, and then the cat {i} left.")
        (example,) = self.read(f"lm[data={self.folder / 'texts'},length=64]", "test", 1)
        text = bytes([*(t - 1 for t in example["tokens"]), example["target"][63]])
        found = [int(at >= 3 and text[at - 3 : at + 2] in text[: at + 1]) for at in range(64)]
        self.assertEqual(example["label_slices"], {"repeats": found})
        self.assertGreater(sum(found), 10)
        (recalled,) = self.read("mqar[preset=updates]", "test", 1)
        later = recalled["label_slices"]["later"]
        self.assertEqual([n >= 0 for n in later], [t >= 0 for t in recalled["target"]])
        (plain,) = self.read("mqar[preset=small]", "test", 1)
        self.assertNotIn("label_slices", plain)

    def refused(self, *arguments: str, code: int = 2) -> str:
        done = attnbench(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), arguments)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def released(self, spec: str, count: int) -> str:
        done = attnbench(
            "sample", spec, "--format", "released", "--count", str(count), "-o", str(self.folder)
        )
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertIn(f"{count} validation, {count} test examples", done.stderr)
        return done.stderr


class ReadsWhatPythonWrote(Sample):
    def test_listops(self):
        trees = {
            "train": "( ( ( ( [SM 9 ) ( ( ( [MED 2 ) 7 ) ] ) ) 5 ) ] )",
            "val": "( ( ( [MIN 4 ) 3 ) ] )",
            "test": "( ( ( [MAX 4 ) 3 ) ] )",
        }
        for name, tree in trees.items():
            lines = f"Source\tTarget\n{tree}\t{evaluate(tree.split())}\n"
            self.write(f"listops-1000/basic_{name}.tsv", lines)
        spec = f"listops[data={self.folder}]"
        found = [self.read(spec, split, 1)[0] for split in SPLITS]
        self.assertEqual([e["target"] for e in found], [8, 3, 4])
        self.assertEqual(found[0]["tokens"], [14, 10, 13, 3, 8, 15, 6, 15])
        said = self.refused("sample", spec, "--count", "2")
        self.assertIn("has 1 examples, fewer than the 2", said)

    def test_cifar10(self):
        def record(label: int, level: int) -> bytes:
            planes = [bytes((level + row) % 256 for row in range(32) for _ in range(32))] * 3
            return struct.pack("B", label) + b"".join(planes)

        for batch in range(5):
            self.write(
                f"cifar-10-batches-bin/data_batch_{batch + 1}.bin",
                b"".join(record(n % 10, 7 * n) for n in range(4 * batch, 4 * batch + 4)),
            )
        self.write("cifar-10-batches-bin/test_batch.bin", record(9, 200))
        spec = f"image[data={self.folder}]"
        for split, count, first in (("train", 18, 0), ("validation", 2, 18)):
            for n, example in enumerate(self.read(spec, split, count), first):
                self.assertEqual(example["target"], n % 10)
                self.assertAlmostEqual(
                    example["values"][32 * 5], ((7 * n + 5) / 255 - MEAN) / DEVIATION, places=5
                )
        self.assertEqual(self.read(spec, "test", 1)[0]["target"], 9)

    def test_imdb(self):
        for n in range(10):
            self.write(f"aclImdb/train/pos/{n}_8.txt", f"liked it {n}: \u00e9\n")
            self.write(f"aclImdb/train/neg/{n}_1.txt", f"hated it {n}")
            self.write(f"aclImdb/test/pos/{n}_10.txt", f"fine {n}")
            self.write(f"aclImdb/test/neg/{n}_4.txt", f"dull {n}")
        spec = f"text[data={self.folder}]"
        train = self.read(spec, "train", 18)
        self.assertEqual([e["target"] for e in train], [0, 1] * 9)
        self.assertEqual(train[3]["tokens"], tokens_of("liked it 1: \u00e9\n"))
        validation = self.read(spec, "validation", 2)
        self.assertEqual(validation[0]["tokens"], tokens_of("hated it 9"))
        self.assertEqual(len(self.read(spec, "test", 20)), 20)

    def test_aan(self):
        for n, name in enumerate(("train", "eval", "test")):
            line = f"{n % 2}.0\tA\tB\tone {n}\ttwo {n} {'x' * 5000}\n"
            self.write(f"tsv_data/new_aan_pairs.{name}.tsv", line)
        for n, split in enumerate(SPLITS):
            example = self.read(f"retrieval[data={self.folder}]", split, 1)[0]
            self.assertEqual(example["target"], n % 2)
            self.assertEqual(example["tokens"], tokens_of(f"one {n}"))
            self.assertEqual(example["second"], tokens_of(f"two {n} {'x' * 5000}")[:4000])

    @staticmethod
    def pattern(side: int, shift: int) -> list[int]:
        return [(x * y + shift) % 256 for y in range(side) for x in range(side)]

    def test_pathfinder(self):
        for task, side in (("pathfinder", 32), ("pathx", 128)):
            level = self.folder / f"pathfinder{side}" / "curv_contour_length_14"
            for number in (0, 1):
                (level / "imgs" / str(number)).mkdir(parents=True)
                lines = []
                for k in range(5):
                    grey = bytes(self.pattern(side, k + 5 * number))
                    picture = Image.frombytes("L", (side, side), grey)
                    name = f"sample_{k}.png"
                    (picture if k % 2 else picture.convert("RGB")).save(
                        level / "imgs" / str(number) / name
                    )
                    lines.append(f"imgs/{number} {name} {k} {k % 2} 1.0 14 4 2")
                (level / "metadata").mkdir(exist_ok=True)
                (level / "metadata" / f"{number}.npy").write_text("\n".join(lines))
            counts = []
            for split, count, first in (("train", 8, 0), ("validation", 1, 8), ("test", 1, 9)):
                examples = self.read(f"{task}[data={self.folder},inputs=tokens]", split, count)
                for n, example in enumerate(examples, first):
                    k, number = n % 5, n // 5
                    self.assertEqual(example["target"], k % 2)
                    wanted = [level + 1 for level in self.pattern(side, k + 5 * number)]
                    self.assertEqual(example["tokens"], wanted)
                counts.append(len(examples))
            self.assertEqual(counts, [8, 1, 1])


class WritesWhatPythonReads(Sample):
    def test_listops(self):
        spec = "listops[length=60]"
        self.released(spec, 5)
        for split, name in zip(SPLITS, ("train", "val", "test")):
            lines = (self.folder / f"listops-1000/basic_{name}.tsv").read_text().splitlines()
            self.assertEqual(lines[0], "Source\tTarget")
            for line, example in zip(lines[1:], self.read(spec, split, 5), strict=True):
                tree, target = line.split("\t")
                self.assertEqual((evaluate(tree.split()), int(target)), (example["target"],) * 2)
                self.assertEqual(len(tree.split()), 3 * len(example["tokens"]) - 2)

    def test_cifar10(self):
        self.released("image[preset=lra]", 2)
        root = self.folder / "cifar-10-batches-bin"
        records = b"".join((root / f"data_batch_{n}.bin").read_bytes() for n in range(1, 6))
        self.assertEqual(len(records), 20 * 3073)
        wanted = [
            *self.read("image[preset=lra]", "train", 18),
            *self.read("image[preset=lra]", "validation", 2),
        ]
        for n, example in enumerate(wanted):
            label, *pixels = records[3073 * n : 3073 * (n + 1)]
            self.assertEqual(label, example["target"])
            self.assertEqual(pixels[:1024], pixels[2048:])
            levels = [round(255 * (v * 0.18 + 0.28)) for v in example["values"]]
            self.assertEqual(pixels[:1024], levels)

    def test_documents(self):
        self.released("text[length=300]", 2)
        splits = (("train", 18, "train"), ("validation", 2, "train"), ("test", 2, "test"))
        for split, count, folder in splits:
            names = sorted(
                (self.folder / "aclImdb" / folder).glob("*/*.txt"),
                key=lambda p: int(p.stem.split("_")[0]),
            )
            if folder == "train":
                validates = split == "validation"
                names = [p for p in names if (p.name.split("_")[0][-1] == "9") == validates]
            examples = self.read("text[length=300]", split, count)
            for path, example in zip(names, examples, strict=True):
                self.assertEqual(path.parent.name, ("neg", "pos")[example["target"]])
                self.assertEqual([b + 1 for b in path.read_bytes()], example["tokens"])

    def test_pairs(self):
        self.released("retrieval[length=300]", 3)
        for split, name in zip(SPLITS, ("train", "eval", "test")):
            lines = (self.folder / f"tsv_data/new_aan_pairs.{name}.tsv").read_text().splitlines()
            examples = self.read("retrieval[length=300]", split, 3)
            for line, example in zip(lines, examples, strict=True):
                label, _, _, first, second = line.split("\t")
                self.assertEqual(float(label), example["target"])
                self.assertEqual(tokens_of(first), example["tokens"])
                self.assertEqual(tokens_of(second), example["second"])

    def test_pathfinder(self):
        spec = "pathfinder[side=32,contour=9,inputs=tokens]"
        self.released(spec, 1)
        level = self.folder / "pathfinder32" / "curv_contour_length_9"
        rows = [line.split() for line in (level / "metadata" / "0.npy").read_text().splitlines()]
        wanted = [e for split, n in zip(SPLITS, (8, 1, 1)) for e in self.read(spec, split, n)]
        for row, example in zip(rows, wanted, strict=True):
            picture = Image.open(level / row[0] / row[1])
            self.assertEqual((picture.mode, picture.size), ("L", (32, 32)))
            self.assertEqual([level + 1 for level in picture.tobytes()], example["tokens"])
            self.assertEqual(int(row[3]), example["target"])


class Refuses(Sample):
    def test_what_does_not_go_together(self):
        released = ("--format", "released", "-o", str(self.folder / "new"))
        self.assertIn("mqar has no released format", self.refused("sample", "mqar", *released))
        for task, said in (
            ("image[side=16]", "side=32"),
            ("pathfinder[side=16,contour=6]", "side=16"),
            ("pathfinder[contour=7]", "contour=7"),
            ("retrieval[length=20000]", "length=20000"),
        ):
            self.assertIn(said, self.refused("sample", task, *released))
        self.assertIn("--split", self.refused("sample", "listops", "--split", "test", *released))
        self.assertIn("-o", self.refused("sample", "listops", "--format", "released"))
        self.assertIn("tsv", self.refused("sample", "listops", "--format", "tsv"))
        self.assertIn("--force", self.refused("sample", "listops", "--force"))

    def test_a_folder_with_files_is_left_alone(self):
        self.write("mine.txt", "kept")
        command = ("sample", "listops[length=60]", "--format", "released", "-o", str(self.folder))
        self.assertIn("not empty", self.refused(*command))
        self.assertIn("choose another folder", self.refused(*command, "--force"))
        self.assertEqual([p.name for p in self.folder.iterdir()], ["mine.txt"])

    def test_force_replaces_an_earlier_sample(self):
        self.released("text[length=300]", 3)
        self.write("mine.txt", "kept")
        command = ("sample", "text[length=300]", "--format", "released", "--count", "1")
        self.assertIn("not empty", self.refused(*command, "-o", str(self.folder)))
        done = attnbench(*command, "-o", str(self.folder), "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(list(self.folder.glob("aclImdb/*/*/*.txt"))), 11)
        self.assertEqual((self.folder / "mine.txt").read_text(), "kept")

    def test_what_cannot_be_written(self):
        for path in ("/dev/full", "/dev/null/x", str(self.folder)):
            self.assertIn(path, self.refused("sample", "listops[length=60]", "-o", path, code=6))
        self.write("file", "")
        for path in (self.folder / "file", "/dev/null/x"):
            command = ("sample", "image[preset=lra]", "--format", "released", "-o", str(path))
            said = self.refused(*command, code=6)
            self.assertIn(str(path), said)

    def test_damaged_data_is_one_line(self):
        said = self.refused("sample", f"listops[data={self.folder}/none]", code=6)
        self.assertIn("no such folder", said)
        self.assertIn("expected", self.refused("info", f"image[data={self.folder}]"))
        self.write("basic_train.tsv", "Source\tTarget\n( ( [MAX 4 ) ] )\tx\n")
        said = self.refused("sample", f"listops[data={self.folder}]")
        self.assertIn("basic_train.tsv line 2: label 'x'", said)
