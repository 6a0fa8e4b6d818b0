"""Makes a release of VERSION: every step checks what it needs, and the first fault ends it with exit code 1 and says how to undo.

    scripts/dev/release 1.0.0 --dry-run     what each step would do, and whether it could, all faults; writes nothing
    scripts/dev/release 1.0.0               all steps; ends with two commits, a tag and build/release/notes.md
    scripts/dev/release --only wheels       one step alone, of the version that is there

The steps: clean (nothing uncommitted), tag (not there yet), held (what earlier versions promised has not changed), versions (the
files that name it agree), changelog (cut at the version), commit (of both), build, rows (a sample of this version for the tests of later ones,
committed), wheels (built, and tried in an environment of their own), tests (.ci/run), mark (the tag, signed where git has a key), notes.
What measures the sample and what the wheel holds are built of a commit without local changes, and name it.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELD = ("tests/data/protocols", "tests/data/rows")  # files of released versions: none is changed or taken out
CFF, ZENODO, CMAKE, CHANGELOG = "CITATION.cff", ".zenodo.json", "CMakeLists.txt", "CHANGELOG.md"
OPEN = "## Unreleased"
VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}")
PROJECT = re.compile(r"(project\(\w+ VERSION )([\d.]+)( LANGUAGES)")
SAMPLE = ["run", "-v", "full", "-v", "linear", "-t", "mqar[vocab=32,pairs=2,length=16,train_examples=256]", "--measure", "speed,memory,accuracy,fidelity",
          "--length", "64", "--heads", "1", "--head-dim", "8", "--train", "steps=20,width=32,heads=2,layers=1,feed_forward=32,batch=8,warmup=5,eval_every=10"]  # fmt: skip
TRIED = "import attnbench, numpy as np; x = np.ones((1, 1, 8, 4), np.float32); assert np.allclose(attnbench.attention('full', x, x, x), 1); print(attnbench.__version__)"


class Fault(Exception):
    """What stops a release, in one line."""


def need(condition: object, fault: str) -> None:
    if not condition:
        raise Fault(fault)


@dataclass
class Release:
    version: str
    root: Path
    is_dry: bool = False
    is_alone: bool = False  # one step, of the version that is there
    has_begun: bool = False  # files may be written
    today: str = field(default_factory=lambda: datetime.datetime.now(datetime.timezone.utc).date().isoformat())

    @property
    def folder(self) -> Path:
        return self.root / "build" / "release"

    def read(self, name: str) -> str:
        path = self.root / name
        need(path.is_file(), f"{name} is not there")
        return path.read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")

    def done(self, *command: str | Path, shown: bool = False) -> str:
        """What a command prints; a Fault where it fails. `shown`: it prints to the terminal instead."""
        words = [str(word) for word in command]
        ended = subprocess.run(words, cwd=self.root, text=True, stdout=None if shown else subprocess.PIPE, stderr=None if shown else subprocess.PIPE)
        said = (ended.stderr or ended.stdout or "").strip().splitlines()
        need(ended.returncode == 0, f"'{' '.join(words[:4])}' ended with {ended.returncode}{': ' + said[-1] if said else ''}")
        return ended.stdout or ""

    def last_tag(self) -> str:
        """The newest tag of a version, "" where there is none. Tags such as v1 or vision name no version."""
        tags = [name for name in self.done("git", "tag", "--list", "v*", "--merged", "HEAD").split() if VERSION.fullmatch(name[1:])]
        return max((name for name in tags if name != f"v{self.version}"), key=lambda name: _numbers(name[1:]), default="")

    def head(self) -> str:
        return self.done("git", "rev-parse", "HEAD").strip()

    def commit(self, subject: str, *files: str) -> None:
        """Commits the files and nothing else; a Fault where something else is changed."""
        self.done("git", "add", "--", *files)
        self.done("git", "commit", "--quiet", "-m", subject)
        clean(self)

    def need_of_head(self, said: str, what: str) -> None:
        """A Fault unless a program's --version tells this version, built of HEAD without local changes."""
        facts = dict(re.findall(r"^(\S+) +(\S+)$", said, re.M))
        told = (facts.get("attnbench"), facts.get("commit"), facts.get("dirty"))
        wanted = (self.version, self.head(), "false")
        need(told == wanted, "{} says that it is {} of commit {}, dirty {}; expected {} of commit {}, dirty {}".format(what, *told, *wanted))


def clean(release: Release) -> str:
    changed = release.done("git", "status", "--porcelain").splitlines()
    need(not changed, f"{len(changed)} files are changed and not committed, such as {changed[0][3:] if changed else ''}")
    return f"at {release.done('git', 'rev-parse', '--short', 'HEAD').strip()}"


def tag(release: Release) -> str:
    need(not release.done("git", "tag", "--list", f"v{release.version}").strip(), f"the tag v{release.version} is there already")
    before = release.last_tag()
    need(not before or _numbers(release.version) > _numbers(before[1:]), f"{release.version} does not follow {before}")
    return f"v{release.version}, after {before or 'no tag'}"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def held(release: Release) -> str:
    before = release.last_tag()
    if not before:
        return "no earlier tag to compare with"
    changed = release.done("git", "diff", "--name-only", "--diff-filter=MDRT", before, "--", *HELD).split()
    need(not changed, f"{changed[0] if changed else ''} was changed after {before}: files of released versions stay as they are")
    return f"protocols and rows of {before} are as they were"


def versions(release: Release) -> str:
    found = versions_in(release)
    need(len(set(found.values())) == 1, "versions differ: " + ", ".join(f"{name} {said}" for name, said in found.items()))
    if release.is_alone and found[CMAKE] == release.version:
        return f"{release.version} in {', '.join(found)}"
    need(VERSION.fullmatch(found[CMAKE]), f"{CMAKE} has the version {found[CMAKE]}; expected such as 1.0.0")
    need(_numbers(release.version) > _numbers(found[CMAKE]), f"{release.version} is not above {found[CMAKE]}, which {CMAKE} has")
    if not release.is_dry:
        release.has_begun = True
        release.write(CMAKE, PROJECT.sub(rf"\g<1>{release.version}\g<3>", release.read(CMAKE)))
        cff = re.sub(r"^version: .*$", f"version: {release.version}", release.read(CFF), flags=re.M)
        release.write(CFF, re.sub(r"^date-released: .*$", f"date-released: {release.today}", cff, flags=re.M))
        zenodo = json.loads(release.read(ZENODO)) | {"version": release.version, "publication_date": release.today}
        text = re.sub(r'("version": )"[^"]*"', rf'\g<1>"{release.version}"', release.read(ZENODO))
        release.write(ZENODO, re.sub(r'("publication_date": )"[^"]*"', rf'\g<1>"{release.today}"', text))
        need(json.loads(release.read(ZENODO)) == zenodo, f"{ZENODO} lacks version or publication_date")
        need(set(versions_in(release).values()) == {release.version}, "a file did not take the version")
        need(f"date-released: {release.today}\n" in release.read(CFF), f"{CFF} lacks date-released")
    return f"from {found[CMAKE]} to {release.version} in {', '.join(found)}"


def versions_in(release: Release) -> dict[str, str]:
    """Where the version stands, and which. pyproject.toml reads that of CMakeLists.txt."""
    need("CMakeLists.txt" in release.read("pyproject.toml") and 'dynamic = ["version"]' in release.read("pyproject.toml"),
         "pyproject.toml does not read the version of CMakeLists.txt")  # fmt: skip
    project, cff = PROJECT.search(release.read(CMAKE)), re.search(r"^version: (.*)$", release.read(CFF), re.M)
    need(project and cff, f"{CMAKE} or {CFF} names no version")
    assert project and cff
    return {CMAKE: project[2], CFF: cff[1], ZENODO: str(json.loads(release.read(ZENODO)).get("version"))}


def section(text: str, heading: str) -> str:
    """What stands under a heading of the changelog, up to the next."""
    after = text.partition(f"\n{heading}")[2]
    return after.partition("\n")[2].partition("\n## ")[0].strip()


def changelog(release: Release) -> str:
    text = release.read(CHANGELOG)
    there = re.search(rf"^#+ *\[?v?{re.escape(release.version)}(?![0-9]|\.[0-9]).*$", text, re.M)
    need(not there, f"{CHANGELOG} has the heading '{there[0] if there else ''}' already")
    entries = section(text, OPEN)
    need(f"\n{OPEN}\n" in text and entries, f"{CHANGELOG} has nothing under '{OPEN}'")
    if not release.is_dry:
        release.write(CHANGELOG, text.replace(f"\n{OPEN}\n", f"\n{OPEN}\n\n## {release.version} ({release.today})\n", 1))
        need(section(release.read(CHANGELOG), f"## {release.version} (") == entries, f"{CHANGELOG} was not cut")
    return f"{len(re.findall('^- ', entries, re.M))} entries under {release.version}"


def program(release: Release) -> Path:
    return release.root / "build" / "native" / "attnbench"


def build(release: Release) -> str:
    if release.is_dry:
        return "cmake --preset native, ninja attnbench"
    release.done("cmake", "--preset", "native")
    release.done("cmake", "--build", "--preset", "native", "--target", "attnbench", shown=True)
    release.need_of_head(release.done(program(release), "--version"), "the program")
    return f"attnbench {release.version} of {release.head()[:12]}"


def rows(release: Release) -> str:
    folder = release.root / "tests" / "data" / "rows"
    there = sorted(folder.glob(f"{release.version}-*.jsonl"))
    need(not there, f"{there[0].name if there else ''} is there already")
    name = f"tests/data/rows/{release.version}-{release.today}-sample.jsonl"
    if not release.is_dry:
        measured = release.folder / Path(name).name  # until it is known to be right
        measured.parent.mkdir(parents=True, exist_ok=True)
        measured.unlink(missing_ok=True)
        release.done(program(release), *SAMPLE, "-o", measured, "--yes", "--quiet")
        lines = measured.read_text(encoding="utf-8").splitlines()
        need(len(lines) == 9 and not any(json.loads(line).get("status", "ok") != "ok" for line in lines), f"{name}: not eight rows that are ok")
        of = json.loads(lines[0]).get("environment", {})
        need((of.get("commit"), of.get("dirty")) == (release.head(), False),
             f"{name}: measured by commit {of.get('commit')}, dirty {of.get('dirty')}; expected {release.head()}")  # fmt: skip
        release.write(name, "\n".join(lines) + "\n")
        release.commit(f"Rows of version {release.version}", name)
    return f"{name}: four measures of two variants"


def tests(release: Release) -> str:
    need((release.root / ".ci" / "run").is_file(), ".ci/run is not there")
    if not release.is_dry:
        release.done(release.root / ".ci" / "run", shown=True)
    return ".ci/run"


def wheels(release: Release) -> str:
    into = release.folder / "wheels"
    if release.is_dry:
        return "scripts/dev/wheel build and, in an environment of its own, attention() and attnbench --version"
    for old in into.glob("*.whl"):
        old.unlink()
    release.done(release.root / "scripts" / "dev" / "wheel", "build", shown=True)
    made = list(into.glob("*.whl"))
    need(len(made) == 1, f"{len(made)} wheels in {into}, expected one")
    trial = release.folder / "trial"
    release.done(sys.executable, "-m", "venv", "--clear", trial)
    release.done(trial / "bin" / "pip", "install", "--quiet", made[0])
    said = release.done(trial / "bin" / "python", "-I", "-c", TRIED).strip()
    need(said == release.version, f"the wheel's package says that it is {said}, not {release.version}")
    release.need_of_head(release.done(trial / "bin" / "attnbench", "--version"), "the wheel's program")
    return made[0].name


def commit(release: Release) -> str:
    subject = f"Version {release.version}"
    if not release.is_dry and release.done("git", "status", "--porcelain").strip():
        release.commit(subject, CMAKE, CFF, ZENODO, CHANGELOG)
    return f"'{subject}'"


def mark(release: Release) -> str:
    key = subprocess.run(["git", "config", "user.signingkey"], cwd=release.root, capture_output=True, text=True).stdout.strip()
    if not release.is_dry:
        clean(release)
        release.done("git", "tag", "-s" if key else "-a", f"v{release.version}", "-m", f"attnbench {release.version}")
    return f"v{release.version}, {'signed' if key else 'not signed: git config user.signingkey names no key'}"


def notes(release: Release) -> str:
    text = release.read(CHANGELOG)
    said = section(text, f"## {release.version} (") or section(text, OPEN)
    path = release.folder / "notes.md"
    if not release.is_dry:
        files = sorted((release.folder / "wheels").glob("*.whl"))
        sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
        lines = [f"# attnbench {release.version} ({release.today})", said]
        if program(release).exists():
            lines += ["## Protocol", release.done(program(release), "protocol").splitlines()[0]]
        lines += ["## SHA-256", "```\n" + "\n".join(sums) + "\n```"] if sums else []
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return f"{path.relative_to(release.root)}; then try the wheel (scripts/dev/wheel try), push the commits and the tag, and publish the wheel"


Step = Callable[[Release], str]
STEPS: tuple[Step, ...] = (clean, tag, held, versions, changelog, commit, build, rows, wheels, tests, mark, notes)
ALONE = ("held", "versions", "changelog", "tests", "wheels", "notes")  # what makes sense without the others


def main(arguments: list[str] | None = None) -> int:
    names = [step.__name__ for step in STEPS]
    parser = argparse.ArgumentParser(prog="scripts/dev/release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", metavar="VERSION", help="such as 1.0.0; with --only, that of CMakeLists.txt")
    parser.add_argument("--dry-run", action="store_true", help="check, and write nothing")
    parser.add_argument("--only", choices=ALONE, help="this step alone")
    parser.add_argument("--skip", action="append", default=[], choices=names, help="leave a step out, and say so")
    parser.add_argument("--root", type=Path, default=ROOT, help="the clone to release")
    given = parser.parse_args(arguments)
    release = Release(given.version or "", given.root.resolve(), given.dry_run, bool(given.only))
    if given.only and not given.version:
        found, fault = attempt(lambda: versions_in(release)[CMAKE])
        if fault:
            print(f"fault    versions: {fault}", file=sys.stderr)
            return 1
        release.version = found
    if not VERSION.fullmatch(release.version):
        parser.error(f"VERSION '{release.version}' is none; expected such as 1.0.0")
    started, _ = attempt(release.head)
    faults = 0
    for step in STEPS:
        name = step.__name__
        if given.only and name != given.only:
            continue
        if name in given.skip:
            print(f"skipped  {name}, as asked", flush=True)
            continue
        said, fault = attempt(partial(step, release))
        if not fault:
            print(f"{'would' if release.is_dry else 'ok':<8} {name}: {said}", flush=True)
            continue
        faults += 1
        print(f"fault    {name}: {fault}{undo(release, step, started)}", file=sys.stderr, flush=True)
        if not release.is_dry:
            break
    return 1 if faults else 0


def attempt(step: Callable[[], str]) -> tuple[str, str]:
    """What a step says, and its fault in one line: "" where there is none. JSON that is broken is a ValueError."""
    try:
        return step(), ""
    except (Fault, OSError, ValueError) as fault:
        return "", " ".join(f"{fault}".split()) or type(fault).__name__


def undo(release: Release, at: Step, started: str) -> str:
    """How to take back what the steps have written; "" before they have written anything."""
    if not release.has_begun or release.is_alone:
        return ""
    if at is notes:
        return "; the tag is made: mend it and run --only notes"
    return f"; undo by: git {'checkout HEAD .' if attempt(release.head)[0] == started else f'reset --hard {started}'}"



if __name__ == "__main__":
    sys.exit(main())
