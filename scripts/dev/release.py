"""Makes a release of VERSION: every step checks what it needs, and the first fault ends it with exit code 1.

    scripts/dev/release 1.0.0 --dry-run     what each step would do, and whether it could; writes nothing
    scripts/dev/release 1.0.0               all steps; ends with a commit, a tag and build/release/notes.md
    scripts/dev/release --only wheels       one step alone, of the version that is there

The steps: clean (nothing uncommitted), tag (not there yet), held (what earlier versions promised has not changed), versions (the
files that name it agree), changelog (cut at the version), build, rows (a sample of this version for the tests of later ones), tests (.ci/run),
wheels (built, and tried in an environment of their own), commit, mark (the tag, signed where git has a key), notes.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELD = ("tests/data/protocols", "tests/data/rows")  # files of released versions: none is changed or taken out
CFF, ZENODO, CMAKE, CHANGELOG = "CITATION.cff", ".zenodo.json", "CMakeLists.txt", "CHANGELOG.md"
OPEN = "## Unreleased"
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
        """The newest tag of a version, "" where there is none."""
        tags = self.done("git", "tag", "--list", "v*", "--sort=-version:refname", "--merged", "HEAD").split()
        return next((tag for tag in tags if tag != f"v{self.version}"), "")


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
    if set(found.values()) == {release.version}:
        return f"{release.version} in {', '.join(found)}"
    need(len(set(found.values())) == 1, "versions differ: " + ", ".join(f"{name} {said}" for name, said in found.items()))
    if not release.is_dry:
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
    if f"\n## {release.version} (" in text:
        need(section(text, f"## {release.version} ("), f"{CHANGELOG} says nothing of {release.version}")
        return f"cut at {release.version} already"
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
    said = release.done(program(release), "--version").split()[1]
    need(said == release.version, f"the program says that it is {said}")
    return f"attnbench {said}"


def rows(release: Release) -> str:
    folder = release.root / "tests" / "data" / "rows"
    there = sorted(folder.glob(f"{release.version}-*.jsonl"))
    if there:
        return f"{there[0].name} is there"
    name = f"tests/data/rows/{release.version}-{release.today}-sample.jsonl"
    if not release.is_dry:
        release.done(program(release), *SAMPLE, "-o", name, "--yes", "--quiet")
        lines = release.read(name).splitlines()
        need(len(lines) == 9 and not any(json.loads(line).get("status", "ok") != "ok" for line in lines), f"{name}: not eight rows that are ok")
    return f"{name}: four measures of two variants"


def tests(release: Release) -> str:
    need((release.root / ".ci" / "run").is_file(), ".ci/run is not there")
    if not release.is_dry:
        release.done(release.root / ".ci" / "run", shown=True)
    return ".ci/run"


def wheels(release: Release) -> str:
    into = release.folder / "wheels"
    if release.is_dry:
        return "pip wheel . and, in an environment of its own, attention() and attnbench --version"
    for old in into.glob("*.whl"):
        old.unlink()
    release.done(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", into, ".", shown=True)
    made = list(into.glob("*.whl"))
    need(len(made) == 1, f"{len(made)} wheels in {into}, expected one")
    trial = release.folder / "trial"
    release.done(sys.executable, "-m", "venv", "--clear", trial)
    release.done(trial / "bin" / "pip", "install", "--quiet", made[0])
    said = {release.done(trial / "bin" / "python", "-I", "-c", TRIED).strip(), release.done(trial / "bin" / "attnbench", "--version").split()[1]}
    need(said == {release.version}, f"the wheel says that it is {' and '.join(sorted(said))}, not {release.version}")
    return made[0].name


def commit(release: Release) -> str:
    subject = f"Version {release.version}"
    if not release.is_dry and release.done("git", "status", "--porcelain").strip():
        release.done("git", "add", "--", CMAKE, CFF, ZENODO, CHANGELOG, "tests/data/rows")
        release.done("git", "commit", "--quiet", "-m", subject)
        clean(release)
    return f"'{subject}'"


def mark(release: Release) -> str:
    key = subprocess.run(["git", "config", "user.signingkey"], cwd=release.root, capture_output=True, text=True).stdout.strip()
    if not release.is_dry:
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
    return f"{path.relative_to(release.root)}; then push the commit and the tag, and publish the wheel"


Step = Callable[[Release], str]
STEPS: tuple[Step, ...] = (clean, tag, held, versions, changelog, build, rows, tests, wheels, commit, mark, notes)
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
    release = Release(given.version or "", given.root.resolve(), given.dry_run)
    try:
        if given.only and not given.version:
            release.version = versions_in(release)[CMAKE]
    except Fault as fault:
        print(f"fault    versions: {fault}", file=sys.stderr)
        return 1
    if not re.fullmatch(r"\d+\.\d+\.\d+", release.version):
        parser.error(f"VERSION '{release.version}' is none; expected such as 1.0.0")
    for step in STEPS:
        name = step.__name__
        if given.only and name != given.only:
            continue
        if name in given.skip:
            print(f"skipped  {name}, as asked", flush=True)
            continue
        try:
            print(f"{'would' if release.is_dry else 'ok':<8} {name}: {step(release)}", flush=True)
        except Fault as fault:
            print(f"fault    {name}: {fault}", file=sys.stderr, flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
