"""Finds the places of the sources that a mutant can change, with libclang.

Only bodies of functions are read. Left out are entries of variants (texts, traits and the
reference, which is the oracle), steps of loops (they hang) and what macros hold: refusals of wrong
arguments. What turns out to be a constant expression does not compile with a switch and is dropped
by the build.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any, ClassVar

from clang import cindex

from attnbench._place import ROOT

from .tree import Piece, Place

HEADERS = ROOT / "build" / "mutate" / "core.pch"
FOLDERS = ("variants", "core/simd", "core/ops")
# The oracle, lists and entries, what measures the processor, and what names the instruction set.
LEFT_OUT = re.compile(
    r"variants/(reference/|catalog|api/[a-z_]+\.h|api/(variant_info|reference|mixer))"
    r"|core/simd/(isa|fma_chains|targets)\b"
)
SILENT = {"do_skip_reason", "why_not", "str", "text"}  # functions that make messages
BINARY = {
    **{"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "&&": "||", "||": "&&"},
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="},
}
PAIRS = (
    "std::max std::min",
    "hn::Add hn::Sub",
    "hn::MulAdd hn::NegMulAdd",
    "hn::Max hn::Min",
    "hn::Gt hn::Le",
    "hn::Lt hn::Ge",
    "hn::IfThenElseZero hn::IfThenZeroElse",
    "hn::And hn::Or",
    "hn::SumOfLanes hn::MaxOfLanes",
)
SWAPS = {
    **dict(pair.split() for pair in PAIRS),
    **dict(reversed(pair.split()) for pair in PAIRS),
    **{"std::exp": "std::expm1", "std::log": "std::log1p", "std::sqrt": "", "hn::Neg": ""},
    **{"hn::Mul": "hn::Add", "hn::Div": "hn::Mul", "hn::MulSub": "hn::MulAdd"},
    **{"subtract": "add", "multiply": "add", "divide": "multiply"},
}
CALL = re.compile(rb"(?<![\w:.>])((?:std::|hn::)?\w+)(?:<int64_t>)?\(")
NUMBER = re.compile(r"(0|[1-9]\d*)([uUlL]*)")
DECIMAL = re.compile(r"[\d.]+(e[+-]?\d+)?")
Kind = cindex.CursorKind
FUNCTIONS = {
    Kind.FUNCTION_DECL,
    Kind.CXX_METHOD,
    Kind.FUNCTION_TEMPLATE,
    Kind.CONSTRUCTOR,
    Kind.CONVERSION_FUNCTION,
}
BODIES = {Kind.COMPOUND_STMT, Kind.IF_STMT, Kind.FOR_STMT, Kind.WHILE_STMT, Kind.CXX_FOR_RANGE_STMT}


def is_target(path: str) -> bool:
    return path.startswith(FOLDERS) and path.endswith((".h", ".cc")) and not LEFT_OUT.search(path)


def sources() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for path in listed.stdout.split() if is_target(path)]


@cache
def arguments() -> list[str]:
    resources = subprocess.run(
        ["clang", "-print-resource-dir"], capture_output=True, text=True, check=True
    )
    return [
        "-std=c++20", "-march=native", "-DATTN_NATIVE",
        f"-I{ROOT}", f"-I{ROOT}/build/native/lists", "-I/usr/include/eigen3",
        "-resource-dir", resources.stdout.strip(),
    ]  # fmt: skip


class FindError(Exception):
    """Why a source could not be read, in one line."""


class Finder:
    """The places of one translation unit, in all sources that are targets, without identifiers."""

    seen: ClassVar[set[tuple[str, int]]] = (
        set()
    )  # functions of headers that another unit of this process has shown

    def __init__(self, path: str) -> None:
        ready = ["-include-pch", str(HEADERS)] if HEADERS.is_file() else []
        self.unit = cindex.Index.create().parse(str(ROOT / path), args=[*arguments(), *ready])
        errors = [str(d) for d in self.unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise FindError(f"{path} cannot be read: {errors[0]}")
        self.texts: dict[str, bytes] = {}
        self.found: list[dict[str, Any]] = []

    def run(self) -> list[dict[str, Any]]:
        self._declarations(self.unit.cursor)
        return self.found

    def _declarations(self, cursor: Any) -> None:
        for child in cursor.get_children():
            if child.kind in FUNCTIONS:
                if child.is_definition() and self._enter(child):
                    self._function(child)
            elif child.kind not in (Kind.TRANSLATION_UNIT,) and self._file(child) is not None:
                self._declarations(child)

    def _file(self, cursor: Any) -> str | None:
        if cursor.location.file is None:
            return None
        path = Path(cursor.location.file.name)
        if not path.is_relative_to(ROOT):
            return None
        relative = str(path.relative_to(ROOT))
        return relative if is_target(relative) else None

    def _enter(self, function: Any) -> bool:
        self.path = self._file(function) or ""
        if not self.path or function.result_type.spelling.endswith("VariantInfo"):
            return False
        self.source = self.texts.setdefault(self.path, (ROOT / self.path).read_bytes())
        key = (self.path, function.extent.start.offset)
        if key in self.seen:
            return False
        self.seen.add(key)
        head = self.source[function.extent.start.offset : function.location.offset]
        return function.spelling not in SILENT and not re.search(rb"\bconste?(xpr|val)\b", head)

    def _function(self, function: Any) -> None:
        self.name = function.spelling
        bodies = [c for c in function.get_children() if c.kind == Kind.COMPOUND_STMT]
        for child in function.get_children():  # a constructor's members too
            if child.kind.is_expression() or child.kind == Kind.COMPOUND_STMT:
                self._visit(child, function)
        for body in bodies:
            self._calls(body.extent.start.offset, body.extent.end.offset)

    def _visit(self, cursor: Any, parent: Any) -> None:
        span = self._span(cursor)
        if (
            cursor.kind == Kind.VAR_DECL
            and b"constexpr" in self.source[span[0] : cursor.location.offset]
        ):
            return
        if cursor.kind == Kind.STATIC_ASSERT or self._text(span).startswith(("ATTN_", "HWY_")):
            return
        children = list(cursor.get_children())
        self._place(cursor, children, span)
        if parent.kind in BODIES:
            self._removal(cursor, parent, span)
        for i, child in enumerate(children):
            step = cursor.kind == Kind.FOR_STMT and child.kind in (
                Kind.UNARY_OPERATOR,
                Kind.COMPOUND_ASSIGNMENT_OPERATOR,
            )
            constant = cursor.kind == Kind.CASE_STMT and i == 0
            if not step and not constant:
                self._visit(child, cursor)

    def _place(self, cursor: Any, children: list[Any], span: tuple[int, int]) -> None:
        text = self._text(span)
        if (
            cursor.kind in (Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR)
            and len(children) == 2
        ):
            left, right = map(self._span, children)
            operator = self._text((left[1], right[0])).strip()
            if operator in BINARY and span == (left[0], right[1]):
                self._add(
                    span,
                    f"{operator} to {BINARY[operator]}",
                    [left, f" {BINARY[operator]} ", right],
                )
        elif (
            cursor.kind == Kind.UNARY_OPERATOR
            and children
            and text[:1] in ("!", "-")
            and text[:2] != "--"
        ):
            self._add(span, f"{text[0]}x to x", [self._span(children[0])])
        elif cursor.kind == Kind.INTEGER_LITERAL and (number := NUMBER.fullmatch(text)):
            value = int(number[1])
            new = value - 1 if value and span[0] % 2 else value + 1
            self._add(span, f"n to n {'-' if new < value else '+'} 1", [f"{new}{number[2]}"])
        elif cursor.kind == Kind.FLOATING_LITERAL and DECIMAL.fullmatch(text):
            self._add(span, "x to 1.25·x", [f"{text} * 1.25" if float(text) else "1.0"])
        elif cursor.kind == Kind.CXX_BOOL_LITERAL_EXPR and text in ("true", "false"):
            self._add(span, "true, false", ["false" if text == "true" else "true"])
        elif cursor.kind == Kind.CONDITIONAL_OPERATOR and len(children) == 3:
            condition, then, other = map(self._span, children)
            if children[0].kind != Kind.BINARY_OPERATOR:
                self._add(span, "c to !c", ["!(", condition, ") ? ", then, " : ", other])
        elif cursor.kind == Kind.IF_STMT and children and children[0].kind.is_expression():
            condition = self._span(children[0])
            if (
                "constexpr" not in self._text((span[0], condition[0]))
                and children[0].kind != Kind.BINARY_OPERATOR
            ):
                self._add(condition, "c to !c", ["!(", condition, ")"])

    def _removal(self, cursor: Any, parent: Any, span: tuple[int, int]) -> None:
        is_call = cursor.kind == Kind.CALL_EXPR
        assigns = cursor.kind == Kind.COMPOUND_ASSIGNMENT_OPERATOR or (
            cursor.kind == Kind.BINARY_OPERATOR and re.search(r"[^=!<>]=[^=]", self._text(span))
        )
        if not (is_call or assigns) or self.source[span[1] : span[1] + 1] != b";":
            return
        if parent.kind == Kind.FOR_STMT and list(parent.get_children())[-1] != cursor:
            return
        self._add((span[0], span[1] + 1), "statement left out", [], statement=True)

    def _calls(self, begin: int, end: int) -> None:
        for match in CALL.finditer(self.source, begin, end):
            name = match[1].decode()
            line = self.source[self.source.rfind(b"\n", 0, match.start()) + 1 : match.start()]
            if name in SWAPS and b"//" not in line and b"constexpr" not in line:
                closing = self._closing(match.end() - 1)
                written = (
                    self.source[match.end(1) : match.end() - 1].decode() if SWAPS[name] else ""
                )
                self._add((match.start(), closing), f"{name} to {SWAPS[name] or 'its argument'}",
                          [SWAPS[name] + written, (match.end() - 1, closing)])  # fmt: skip
            if name == "hn::IfThenElse":
                self._swapped_branches(match.start(), match.end())

    def _swapped_branches(self, begin: int, at: int) -> None:
        parts, depth, first = [], 0, at
        for i in range(at, len(self.source)):
            char = self.source[i : i + 1]
            if depth == 0 and char in b",)":
                parts.append((first, i))
                first = i + 1
                if char == b")":
                    break
            depth += (char in b"([{") - (char in b")]}")
        if len(parts) == 3:
            self._add(
                (begin, parts[2][1] + 1),
                "branches swapped",
                ["hn::IfThenElse(", parts[0], ", ", parts[2], ", ", parts[1], ")"],
            )

    def _closing(self, at: int) -> int:
        depth = 0
        for i in range(at, len(self.source)):
            depth += (self.source[i : i + 1] == b"(") - (self.source[i : i + 1] == b")")
            if depth == 0:
                return i + 1
        return at

    def _add(
        self, span: tuple[int, int], operator: str, pieces: list[Piece], statement: bool = False
    ) -> None:
        if span[1] <= span[0] or any(isinstance(p, tuple) and not p[0] < p[1] for p in pieces):
            return  # from a macro
        line = self.source.count(b"\n", 0, span[0]) + 1
        self.found.append({
            "file": self.path, "line": line, "start": span[0], "end": span[1],
            "function": self.name, "operator": operator, "pieces": pieces, "statement": statement,
        })  # fmt: skip

    def _span(self, cursor: Any) -> tuple[int, int]:
        return cursor.extent.start.offset, cursor.extent.end.offset

    def _text(self, span: tuple[int, int]) -> str:
        return self.source[span[0] : span[1]].decode(errors="replace")


def places_of(path: str) -> list[dict[str, Any]]:
    return Finder(path).run()


def numbered(found: Iterable[dict[str, Any]]) -> list[Place]:
    """Each place once, numbered in the order of the sources, so that numbers repeat."""
    once = {(f["file"], f["start"], f["end"], f["operator"]): f for f in found}
    return [Place.from_json({"id": i, **once[key]}) for i, key in enumerate(sorted(once), 1)]


def sources_hash() -> str:
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.encode() + (ROOT / path).read_bytes())
    return digest.hexdigest()[:16]


def all_places(jobs: int) -> list[Place]:
    """Of the tree as it is. Reading takes minutes, so the answer is kept until a source changes."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + sources_hash().encode()).hexdigest()
    kept = ROOT / "build" / "mutate" / "places.json"
    if kept.is_file():
        stored = json.loads(kept.read_text())
        if stored["sources"] == digest:
            return [Place.from_json(entry) for entry in stored["places"]]
    kept.parent.mkdir(parents=True, exist_ok=True)
    HEADERS.unlink(missing_ok=True)
    headers = str(ROOT / "core" / "precompiled.h")  # read once for all sources
    unit = cindex.Index.create().parse(headers, args=["-xc++-header", *arguments()])
    unit.save(str(HEADERS))
    with Pool(jobs) as pool:
        found = pool.map(
            places_of, [path for path in sources() if path.endswith(".cc")], chunksize=1
        )
    places = numbered(itertools.chain.from_iterable(found))
    kept.write_text(json.dumps({"sources": digest, "places": [p.to_json() for p in places]}))
    return places
