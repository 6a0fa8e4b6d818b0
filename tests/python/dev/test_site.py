"""The site: every link of the documents leads somewhere on it, folders have lists, nothing is loaded from elsewhere, and two builds
are the same."""

from __future__ import annotations

import hashlib
import html
import json
import re
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock
from urllib.parse import parse_qsl, unquote

from dev.site import gather as site

from ..faults import BUILT, ROOT, InFolder
from .built_site import MKDOCS, build


class Links(HTMLParser):
    """What a page links to, what it loads, and the places in it that a link can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {str(found[name]) for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        for name in ("src", "href"):
            if tag in ("script", "img", "link", "iframe") and found.get(name):
                self.loads.append(str(found[name]))


class Gathered(InFolder):
    def small(self, **texts: str) -> Path:
        root = self.folder / "root"
        for name in ("docs/decisions", "results/reference/plots"):
            (root / name).mkdir(parents=True)
        for name in site.TOP:
            (root / name).write_text("# Page\n")
        (root / "results" / "reference" / "plots" / "a.png").write_bytes(b"png")
        for name, text in texts.items():
            (root / "docs" / f"{name}.md").write_text(text)
        return root

    def test_links_to_folders_lead_to_their_lists(self) -> None:
        root = self.small(guide="[rows](../results/reference) and `[code](nowhere)`\n\n```\n[x](y)\n```\n")
        settings = json.loads(site.gathered(root, self.folder / "pages"))
        pages = self.folder / "pages"
        text = (pages / "docs" / "guide.md").read_text()
        self.assertIn("[rows](../results/reference/index.md) and `[code](nowhere)`", text)
        self.assertIn("- [plots](plots/index.md)", (pages / "results" / "reference" / "index.md").read_text())
        self.assertIn("- [a.png](a.png)", (pages / "results" / "reference" / "plots" / "index.md").read_text())
        self.assertTrue((pages / "results" / "reference" / "plots" / "a.png").exists())
        self.assertIn({"Using it": ["docs/guide.md"]}, settings["nav"])

    def test_a_link_that_leads_nowhere_is_refused(self) -> None:
        root = self.small(guide="[gone](../results/gone.jsonl)\n")
        with self.assertRaisesRegex(site.SiteError, r"docs/guide\.md: links to '\.\./results/gone\.jsonl', which is not there"):
            site.gathered(root, self.folder / "pages")

    def test_the_workflow_publishes_the_folder_that_it_builds(self) -> None:
        text = (ROOT / ".github" / "workflows" / "site.yml").read_text(encoding="utf-8")
        folder = re.search(r"^ +- run: scripts/site (\S+)$", text, re.M)[1]
        self.assertEqual(re.findall(r"^ +path: (\S+)$", text, re.M), [folder])
        for script in re.findall(r"scripts/\w+", text):
            self.assertTrue((ROOT / script).exists(), script)
        presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["buildPresets"]
        self.assertLessEqual(set(re.findall(r"--build --preset (\w+)", text)), {p["name"] for p in presets})

    def test_every_document_of_the_repository_can_be_gathered(self) -> None:
        with mock.patch.object(site, "FOLDERS", ()):
            settings = json.loads(site.gathered(ROOT, self.folder / "pages"))
        named = json.dumps(settings["nav"])
        for document in (*(ROOT / "docs").rglob("*.md"), *(ROOT / "results").glob("*.md")):
            self.assertIn(document.relative_to(ROOT).as_posix(), named)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@BUILT
@unittest.skipUnless(MKDOCS.exists(), "no .venv-site here: scripts/setup --venv site")
class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        (cls.folder / "first").mkdir()
        cls.site = build(cls.folder / "first")
        cls.pages = {page: Links(page.read_text(encoding="utf-8")) for page in cls.site.rglob("*.html")}

    def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(self) -> None:
        faults, seen, places = [], 0, 0
        for page, found in self.pages.items():
            name = page.relative_to(self.site)
            faults += [f"{name} loads {x}" for x in found.loads if re.match(r"(https?:)?//", x)]
            for link in (*found.links, *found.loads):
                if re.match(r"[a-z]+:|//", link):
                    continue
                path, _, place = link.partition("#")
                target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
                seen += 1
                if not target.is_file():
                    faults.append(f"{name}: {link}")
                elif place and target in self.pages:
                    places += 1
                    if not self.is_place(target, unquote(place)):
                        faults.append(f"{name}: {link} names no place on that page")
        self.assertEqual(faults, [])
        self.assertGreater(seen, 3000)
        self.assertGreater(places, 400)

    def is_place(self, page: Path, place: str) -> bool:
        """Whether the page has it; of the table of variants, whether its form has the choice."""
        found = self.pages[page]
        if place in found.places:
            return True
        choice = parse_qsl(place)
        text = page.read_text(encoding="utf-8")
        wanted = {"family": "<option>{}</option>", "trait": 'name="trait" value="{}"'}
        return bool(choice) and "filter" in found.places and all(wanted.get(k, "\0").format(v) in text for k, v in choice)

    def test_each_variant_has_a_page_that_the_table_links_to(self) -> None:
        words = re.findall(r"^  (\w+/(\w+))$", (ROOT / "variants" / "CMakeLists.txt").read_text(), re.M)
        variants = {name: f"variants/{path}.cc" for path, name in words}
        table = self.pages[self.site / "variants" / "index.html"]
        self.assertEqual({link.removesuffix(".html") for link in table.links if re.fullmatch(r"\w+\.html", link)} - {"index"}, variants.keys())
        for name in variants:
            text = (self.site / "variants" / f"{name}.html").read_text(encoding="utf-8")
            for heading in ("What it computes", "Cost", "Decoding", "Parameters and weights", "Contract checks", "Speed", "Scores", "Reproduce"):
                self.assertIn(f">{heading}</h2>", text, name)
            source = variants[name]
            self.assertIn(html.escape((ROOT / source).read_text(encoding="utf-8").rstrip()), text, name)
            self.assertEqual((self.site / source).read_bytes(), (ROOT / source).read_bytes())

    def test_two_builds_are_the_same_byte_for_byte(self) -> None:
        (self.folder / "second").mkdir()
        with mock.patch.dict("os.environ", {"SOURCE_DATE_EPOCH": "86400"}):  # as on another day
            again = build(self.folder / "second")
        self.assertEqual(digests(again), digests(self.site))
