"""The documents of the site and the settings of MkDocs. Copies the documents and what they link to, so that every link leads
somewhere on the site."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

TOP = ("README.md", "API.md", "ROADMAP.md", "SECURITY.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")
FOLDERS = ("results/reference",)  # whole: the rows are what the site is about
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.M | re.S)
INDEX = "index.md"
HERE = Path(__file__).resolve().parent
VARIANTS = "variants"  # the folder of their pages


class SiteError(Exception):
    """A link that leads nowhere, as one line."""


def gathered(root: Path, pages: Path) -> str:
    """Fills `pages` and returns the settings of MkDocs. Error where a document links to a file that
    is not there."""
    documents = [root / name for name in TOP] + sorted((root / "docs").rglob("*.md")) + sorted((root / "results").glob("*.md"))
    linked: set[Path] = set()
    for document in documents:
        text = _rewritten(document, root, linked)
        target = pages / document.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for folder in FOLDERS:
        linked.add(root / folder)
    for path in sorted(linked):
        _copy(path, root, pages)
    return _settings(root, documents)


def _rewritten(document: Path, root: Path, linked: set[Path]) -> str:
    """Returns the document's text, in which a link to a folder leads to the folder's list. Adds what
    it links to and what is no document to `linked`."""

    def renew(found: re.Match[str]) -> str:
        begin, link, anchor, end = found[1], found[2], found[3] or "", found[4]
        if re.match(r"[a-z]+:", link):
            return found[0]
        path = Path(os.path.normpath(document.parent / link))
        if not path.exists() or root not in (path, *path.parents):
            raise SiteError(f"{document.relative_to(root)}: links to '{link}', which is not there")
        if path.is_dir():
            linked.add(path)
            return f"{begin}{link.rstrip('/')}/{INDEX}{anchor}{end}"
        if path.suffix != ".md":
            linked.add(path)
        return found[0]

    parts = FENCE.split(document.read_text(encoding="utf-8"))
    return "".join(part if i % 2 else LINK.sub(renew, part) for i, part in enumerate(parts))


def _copy(path: Path, root: Path, pages: Path) -> None:
    target = pages / path.relative_to(root)
    if path.is_file():
        if target.exists():  # a document, whose links were rewritten
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        return
    for file in _files(path):
        _copy(file, root, pages)
    for folder in (path, *(f for f in sorted(path.rglob("*")) if f.is_dir() and f.name != "__pycache__")):
        index = pages / folder.relative_to(root) / INDEX
        index.parent.mkdir(parents=True, exist_ok=True)
        index.write_text(_listing(folder, root), encoding="utf-8")


def _files(folder: Path) -> Iterator[Path]:
    return (f for f in sorted(folder.rglob("*")) if f.is_file() and not f.is_symlink() and "__pycache__" not in f.parts)


def _listing(folder: Path, root: Path) -> str:
    lines = [f"# {folder.relative_to(root)}", ""]
    for path in sorted(p for p in folder.iterdir() if p.name != "__pycache__"):
        link = f"{path.name}/{INDEX}" if path.is_dir() else path.name
        lines.append(f"- [{path.name}]({link})")
    return "\n".join(lines) + "\n"


def _settings(root: Path, documents: list[Path]) -> str:
    """Returns mkdocs.yml, as JSON, which YAML contains. The theme is our own: nothing is loaded from another host, and search
    works in a folder that is opened from disk."""
    names = {d.stem: d.relative_to(root).as_posix() for d in documents if d.parent.name == "docs"}
    found = {d.stem: d.relative_to(root).as_posix() for d in documents if d.parent.name == "results"}
    decisions = [d.relative_to(root).as_posix() for d in documents if d.parent.name == "decisions"]
    readers = [n for n in ("guide", "sweep_files", "python", "clusters", "method", "variants", "tasks") if n in names]
    first = [n for n in ("findings", "reference", "reproductions", "performance", "peers") if n in found]
    results = [*first, *(n for n in found if n not in first)]
    rest = [n for n in names if n not in readers]
    nav = [
        {"attnbench": "README.md"},
        {"Variants": f"{VARIANTS}/{INDEX}"},
        {"Report": "report.html"},
        {"Using it": [names[n] for n in readers]},
        {"Results": [*(found[n] for n in results), {"Rows and pictures": f"results/reference/{INDEX}"}]},
        {"Inside": [*(names[n] for n in rest), {"Decisions": decisions}, *TOP[1:]]},
    ]
    settings = {
        "site_name": "attnbench",
        "docs_dir": "pages",
        "use_directory_urls": False,
        "theme": {"name": None, "custom_dir": str(HERE / "theme")},
        "plugins": [],  # search is ours too: hooks.py writes the index
        "hooks": [str(HERE / "hooks.py")],
        "nav": nav,
        "not_in_nav": f"{INDEX}\n/{VARIANTS}/*.md\n",
        "validation": {"nav": {"omitted_files": "ignore", "not_found": "warn"}, "links": {"not_found": "warn"}},
    }
    return json.dumps(settings, indent=1)
