"""The names in the anonymous namespaces of one folder differ, from each other and from those of its headers; in Python, those of a module or class.

Several sources of a folder are compiled as one (cmake/library.cmake). There a name of one source can hide a name that
another means, or join its overloads, without a word from the compiler.
"""

import ast
import collections
import re
import unittest

from ..faults import ROOT


def compiled_alone():
    """The sources that Highway compiles file by file."""
    text = (ROOT / "core" / "CMakeLists.txt").read_text()
    listed = re.search(r"set\(dispatched\n((?:  [\w/]+\.cc\)?\n)+)", text)[1]
    return {f"core/{path}" for path in re.findall(r"[\w/]+\.cc", listed)}


def engines():
    """The sources of variants/ that are compiled with others of their family."""
    text = (ROOT / "variants" / "CMakeLists.txt").read_text()
    listed = re.search(r"FAMILIES[^\n]*\n((?:    [\w/${}]+\.cc\n)+)", text)[1]
    listed += "".join(f"convolution/fft_{kind}.cc\n" for kind in ("fftw", "builtin"))  # ${ATTN_FFT}: one of them
    return {f"variants/{path}" for path in re.findall(r"[\w/]+\.cc", listed)}


ANONYMOUS = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.M | re.S)
TEMPLATE = r"^(?:template <[^\n]*>\n)?"
DEFINITIONS = (
    re.compile(TEMPLATE + r"(?:class|struct|union|enum(?: class)?) (\w+)", re.M),
    re.compile(
        TEMPLATE + r"(?!using|return|namespace|#|class|struct|enum|//|\}|  )"
        r"[\w:<>,&\* \[\]]+?[ &\*](\w+)\(",
        re.M,
    ),
    re.compile(
        r"^(?:constexpr|const|static|inline|thread_local|volatile|std::)[^\n=({]*?[ *&](\w+)"
        r"(?:\[\w*\])*(?: =|\{|;)",
        re.M,
    ),
    re.compile(r"^using (\w+) =", re.M),
)
CONSTANTS = re.compile(r"^(?:constexpr|const) [\w:]+ ((?:\w+ = [^,;]+, )+\w+ = [^;]+);", re.M)
ENUM = re.compile(r"^enum (?!class)[^{]*\{([^}]*)\}", re.M)


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "harness" else parts[0]


def names_in(text, bodies=None):
    """The names that the anonymous namespaces of a source define, or those of a header."""
    names = set()
    for body in bodies or ANONYMOUS.findall(text):
        for pattern in DEFINITIONS:
            names.update(pattern.findall(body))
        for constants in CONSTANTS.findall(body):
            names.update(re.findall(r"(\w+) =", constants))
        for values in ENUM.findall(body):
            names.update(re.findall(r"\w+", re.sub(r"=[^,]*", "", values)))
    return names


def repeated(sources):
    """(folder, name, files) of each name that a source of a folder and another file there define; sources: {path: text}."""
    files = collections.defaultdict(set)
    hidden = set()
    for path, text in sources.items():
        header = path.endswith(".h")
        for name in names_in(text, [text] if header else None):
            files[folder_of(path), name].add(path)
            if not header:
                hidden.add((folder_of(path), name))
    return sorted((*key, sorted(files[key])) for key in hidden if len(files[key]) > 1)


TYPE = re.compile(r"^(?:(?:class|struct|union|enum(?: class)?) (\w+)[^;{}]*\{|using (\w+) =)", re.M)


def types_declared_twice(headers):
    """(namespace, name, files) of each type that two headers define in one namespace; headers: {path: text}."""
    files = collections.defaultdict(set)
    for path, text in headers.items():
        namespace = re.search(r"^namespace ([\w:]+) \{", text, re.M)
        for defined, alias in TYPE.findall(text) if namespace and "HWY_NAMESPACE" not in text else ():
            files[namespace[1], defined or alias].add(path)
    return sorted((*key, sorted(paths)) for key, paths in files.items() if len(paths) > 1)


def bound(statement):
    """The names that a statement of a module or class binds, those inside of it left out."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    names = [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    return [n.id for n in names if isinstance(n.ctx, ast.Store)]  # NAME[...] = … binds no name


def bound_twice(text):
    """Names that a module, or a class in it, binds by two of its statements: the second hides the first."""
    tree = ast.parse(text)
    bodies = [node.body for node in (tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)))]
    counts = [collections.Counter(name for statement in body for name in bound(statement)) for body in bodies]
    return sorted(name for count in counts for name, times in count.items() if times > 1)


class Names(unittest.TestCase):
    def test_a_module_of_python_binds_a_name_once(self):
        paths = [path for folder in ("scripts", "python", "tests", "results") for path in (ROOT / folder).rglob("*.py")]
        self.assertGreater(len(paths), 200)
        found = {str(p.relative_to(ROOT)): names for p in paths if (names := bound_twice(p.read_text()))}
        self.assertEqual(found, {})
        self.assertEqual(bound_twice("A, B = 1, 2\nclass C:\n    def b(self): ...\n    def b(self): ...\nA: int = 3\n"), ["A", "b"])

    def test_a_type_has_one_header(self):
        # The linker takes one of two types of a name for the other, without a word.
        headers = {
            str(path.relative_to(ROOT)): path.read_text()
            for folder in ("core", "variants", "tasks", "harness", "python", "tests")
            for path in (ROOT / folder).rglob("*.h")
        }
        self.assertGreater(len(headers), 100)
        self.assertEqual(types_declared_twice(headers), [])
        one = "namespace attn {\nstruct Name {\n};\n}\n"
        self.assertTrue(types_declared_twice({"a.h": one, "b.h": one.replace("struct", "class")}))
        self.assertTrue(types_declared_twice({"a.h": one, "b.h": "namespace attn {\nusing Name = int;\n}\n"}))
        other = {"b.h": one.replace("attn {", "attn::cli {"), "c.h": "namespace attn {\nstruct Name;\n}\n"}
        self.assertEqual(types_declared_twice({"a.h": one, **other}), [])

    def test_differ_within_a_folder(self):
        paths = [
            path
            for folder in ("core", "variants", "tasks", "harness", "python")
            for path in (ROOT / folder).rglob("*.[ch]*")
            if path.suffix in (".cc", ".h")
        ]
        sources = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
        alone = compiled_alone()
        self.assertGreater(len(alone), 10)
        sources = {path: text for path, text in sources.items() if path not in alone}
        self.assertGreater(len(sources), 150)
        own = engines()
        self.assertGreater(len(own), 100)
        self.assertEqual(repeated({path: text for path, text in sources.items() if path not in own}), [])
        families = {family: {} for family in sorted({path.split("/")[1] for path in own})}
        for path, text in sources.items():
            family = path.split("/")[1]
            if path.startswith("variants/") and family in families and (path in own or path.endswith(".h")):
                families[family][path] = text
        for family, files in families.items():
            self.assertEqual(repeated(files), [], family)

    def test_repeats_are_seen(self):
        def source(body):
            return f"namespace attn {{\nnamespace {{\n\n{body}\n\n}}  // namespace\n}}\n"

        for body in (
            "class Name final {\n};",
            "int64_t name(int64_t x) {\n  return x;\n}",
            "constexpr int kName = 1;",
            "constexpr int32_t kOther = 1, kName = 2;",
            "enum Kind : int32_t { kFirst = 1, kName };",
            "using Name = std::vector<int>;",
        ):
            twice = {"tasks/one.cc": source(body), "tasks/two.cc": source(body)}
            self.assertTrue(repeated(twice), body)
            header = {"tasks/one.cc": source(body), "tasks/two.h": body + "\n"}
            self.assertTrue(repeated(header), body)
            apart = {"tasks/one.cc": source(body), "core/two.cc": source(body)}
            self.assertEqual(repeated(apart), [], body)

    def test_no_source_opens_a_namespace_whole(self):
        # such names give way to those of another source without an error
        for folder in ("core", "variants", "tasks", "harness", "python"):
            for path in (ROOT / folder).rglob("*.cc"):
                self.assertNotRegex(path.read_text(), r"(?m)^using namespace (?!std)", str(path))
