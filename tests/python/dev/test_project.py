"""The files around the sources say what is so: workflows call scripts that are there, on the systems of README.md; templates ask for
`attnbench doctor`; API.md lists what there is; the files that a DOI is made of agree; a badge is of a state that exists."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
import unittest

import attnbench

from ..faults import BUILT, PROGRAM, ROOT

PAGES = ("API.md", "CODE_OF_CONDUCT.md", "ROADMAP.md", "SECURITY.md")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def words_of(page: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", page)


class Workflows(unittest.TestCase):
    def test_each_step_calls_a_script_that_is_there(self) -> None:
        for path in (ROOT / ".github" / "workflows").glob("*.yml"):
            called = re.findall(r"run: ((?:scripts|\.ci)/\S+)", path.read_text(encoding="utf-8"))
            self.assertTrue(called, path.name)
            for script in called:
                self.assertTrue((ROOT / script).stat().st_mode & 0o111, f"{path.name}: {script}")

    def test_they_test_what_ci_tests(self) -> None:
        """Indented lines too, such as those that run on Debian alone; what follows `||` is said where a line fails."""
        lines = [line.strip() for line in text(".ci/run").splitlines()]
        own = {line.removeprefix('"$root/').partition(" || ")[0].replace('"', "") for line in lines if line.startswith('"$root/')}
        self.assertGreater(len(own), 3)
        self.assertLessEqual(own, {line.strip() for line in re.findall(r"run: (.*)", text(".github/workflows/tests.yml"))})

    def test_a_step_of_debian_is_one_in_both(self) -> None:
        """Ubuntu's Chromium is a snap, which a container cannot install."""
        said = r"- if: startsWith\(matrix.system, 'debian'\).*\n +run: scripts/setup --venv browser chromium\n"
        self.assertRegex(text(".github/workflows/tests.yml"), said)
        self.assertRegex(text(".ci/run"), r"ID=debian' /etc/os-release; then\n.*--venv browser chromium")

    def test_they_test_the_systems_that_the_readme_names(self) -> None:
        named = set(re.findall(r"(Debian|Ubuntu) ([\d.]+)", text("README.md")))
        systems = re.search(r"system: (\[.*\])", text(".github/workflows/tests.yml"))
        assert systems
        self.assertEqual({f"{name.lower()}:{version}" for name, version in named}, set(json.loads(systems[1])))


class Container(unittest.TestCase):
    def test_its_steps_are_those_of_the_readme(self) -> None:
        steps = re.findall(r"^(FROM|RUN|ENTRYPOINT) (.*)$", text("Containerfile"), re.M)
        self.assertEqual([kind for kind, _ in steps], ["FROM", "RUN", "ENTRYPOINT"])
        (_, system), (_, build), (_, entry) = steps
        self.assertIn(f'"{system}"', text(".github/workflows/tests.yml"))  # one that is tested
        (entry,) = json.loads(entry)
        self.assertEqual(build, f"{entry} --version")
        self.assertRegex(text("README.md"), rf"```\n{re.escape(entry)} +# installs what is missing")

    def test_it_leaves_out_what_was_built_elsewhere(self) -> None:
        self.assertLessEqual({"/build*", "/.venv*"}, set(text(".containerignore").split()))


class Pages(unittest.TestCase):
    def test_templates_ask_for_the_doctor(self) -> None:
        asked = [*(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"), ROOT / ".github" / "pull_request_template.md"]
        self.assertEqual(len(asked), 3)
        for path in asked:
            self.assertIn("attnbench doctor", path.read_text(encoding="utf-8"), path.name)

    def test_files_and_scripts_that_they_name_are_there(self) -> None:
        for page in PAGES:
            for word in (*words_of(text(page)), *re.findall(r"\]\(([^)]+)\)", text(page)), *re.findall(r"\b[A-Z]+\.md\b", text(page))):
                if re.fullmatch(r"(scripts|results|docs|variants|tasks)/[\w/.]+|[A-Z_]+\.md", word):
                    self.assertTrue((ROOT / word).exists(), f"{page}: {word}")

    def test_names_of_python_are_those_of_the_package(self) -> None:
        listed = text("API.md").partition("`import attnbench`")[2].partition("Modules and")[0]
        self.assertEqual(words_of(listed), attnbench.__all__)

    def test_a_badge_is_of_a_state_that_exists(self) -> None:
        """There is one once pyproject.toml says where the project is, and of a workflow that is there."""
        project = tomllib.loads(text("pyproject.toml"))["project"]
        badges = re.findall(r"\]\((\S*(?:badge|shields)\S*)\)", text("README.md"))
        self.assertTrue(not badges or "urls" in project, badges)
        for badge in badges:
            workflow = re.search(r"workflows/(\w+\.yml)", badge)
            self.assertTrue(workflow and (ROOT / ".github" / "workflows" / workflow[1]).is_file(), badge)

    @BUILT
    def test_verbs_and_exit_codes_are_those_of_the_program(self) -> None:
        def said(*words: str) -> str:
            return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout

        page = text("API.md")
        verbs = re.findall(r"^  (\w+) +\S", said("--help").partition("VERB [OPTION...]\n")[2].partition("\n  attnbench")[0], re.M)
        self.assertGreater(len(verbs), 15)
        listed = words_of(page.partition("may change.\n")[2].partition("Exit codes")[0])
        self.assertEqual(sorted(listed), sorted([*verbs, "help"]))
        codes = re.findall(r"\b\d+\b", " ".join(re.findall(r"^  ([\d, ]+?)  ", said("help", "exit_codes"), re.M)))
        told = re.findall(r"`(\d+)`", page.partition("Exit codes: ")[2].partition(", as")[0])
        self.assertEqual(sorted(told, key=int), sorted(codes, key=int))


class Citation(unittest.TestCase):
    def test_both_files_say_the_same(self) -> None:
        cff, zenodo = text("CITATION.cff"), json.loads(text(".zenodo.json"))
        for name, here in (("title", "title"), ("license", "license"), ("version", "version"), ("date-released", "publication_date")):
            found = re.search(rf'^{name}: "?(.*?)"?$', cff, re.M)
            assert found, name
            self.assertEqual(found[1], zenodo[here])
        self.assertEqual(re.findall(r'^  - name: "(.*)"$', cff, re.M), [creator["name"] for creator in zenodo["creators"]])
        self.assertEqual(" ".join(cff.partition("abstract: >-\n")[2].partition("\nauthors")[0].split()), zenodo["description"])
        keywords = re.search(r"^keywords: \[(.*)\]$", cff, re.M)
        assert keywords
        self.assertEqual(keywords[1].split(", "), zenodo["keywords"])
        self.assertEqual((zenodo["upload_type"], zenodo["access_right"]), ("software", "open"))
