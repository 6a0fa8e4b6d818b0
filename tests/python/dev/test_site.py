"""The site: every link of the documents leads somewhere on it, folders have lists, and nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

from dev import site

from ..faults import ROOT, InFolder

MKDOCS = ROOT / ".venv-site" / "bin" / "mkdocs"


class Links(HTMLParser):
    """What a page links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
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


@unittest.skipUnless(MKDOCS.exists(), "no .venv-site here: scripts/setup --venv site")
class Built(unittest.TestCase):
    def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            pages = folder / "pages"
            (folder / "mkdocs.yml").write_text(site.gathered(ROOT, pages))
            (pages / "report.html").write_text("<!DOCTYPE html><title>report</title>")
            command = [MKDOCS, "build", "--quiet", "--config-file", folder / "mkdocs.yml", "--site-dir", folder / "site"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            faults, seen = [], 0
            for page in (folder / "site").rglob("*.html"):
                found = Links(page.read_text(encoding="utf-8"))
                faults += [f"{page.name} loads {x}" for x in found.loads if re.match(r"(https?:)?//", x)]
                for link in (*found.links, *found.loads):
                    path = link.partition("#")[0].partition("?")[0]
                    if path and not re.match(r"[a-z]+:|//", path):
                        seen += 1
                        target = page.parent / path.replace("%20", " ")
                        if page.name != "404.html" and not target.exists():
                            faults.append(f"{page.relative_to(folder / 'site')}: {link}")
            self.assertEqual(faults, [])
            self.assertGreater(seen, 300)
