"""Rules about the source that no linter knows. Each finding is one line that says where.

An exception is written into EXCEPTIONS as it is printed, up to the "|", under the name of the test
and with its reason; one that is no longer needed fails too, so the list only shrinks.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)  # each process parses every file, once
ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "ascertain"
FILE_LINES = {"src": 500, "tests": 800}
FUNCTION_LINES = 70
POSITIONAL = 5
COLUMNS = 100

EXCEPTIONS: dict[str, dict[str, str]] = {}  # test: finding: reason

# Time and chance come from runtime/clock.py and the store, so that tests can set them. The
# acceptance kit runs real systems and real faults in real time.
CLOCK_HOMES = ("runtime/clock.py", "store/", "acceptance/", "testing/")
CLOCK_CALLS = (
    r"time\.(time|time_ns|sleep)|(datetime\.)?(datetime|date)\.(now|utcnow|today)"
    r"|random\..+|uuid\.uuid[14]"
)
# One helper shields a store write from cancellation; any other hop to a thread loses it.
HOP_HOMES = ("runtime/loop.py",)
HOP_CALLS = r"asyncio\.to_thread|(.+\.)?run_in_executor|anyio\.to_thread\..+"

# One word per concept: on the left what nobody may write, on the right the word of the glossary.
# Only phrases that can mean nothing else stand here; a blank also matches "_" and "-".
SYNONYMS = {
    "dead letter": "review",
    "dedupe key": "key, or target key",
    "deduplication key": "key, or target key",
    "effect id": "effect reference",
    "grace period": "quiet period",
    "idempotence token": "key, or target key",
    "idempotency token": "key, or target key",
    "indeterminate outcome": "unknown",
    "manual intervention": "review",
    "manual review": "review",
    "outcome uncertain": "unknown",
    "protection level": "protection class",
    "safety class": "protection class",
    "settling period": "quiet period",
    "settling time": "quiet period",
    "uncertain outcome": "unknown",
    "人工干预": "人工核查",
    "人工审核": "人工核查",
    "幂等令牌": "业务标识 / 目标键",
    "结果不确定": "结果不明",
    "静默期": "观察期",
}
# Hosts of package registries: an installer's own settings say where packages come from.
REGISTRIES = r"(files\.)?python" + r"hosted\.org|py" + r"pi\.org|registry\.npm" + r"js\.org"
REGISTRIES += r"|^\s*--(extra-)?index-" + r"url|\b(deb|security)\.deb" + r"ian\.org"
NOTES = r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b"

CORE_PACKAGES = {"ascertain", "msgspec", "rfc8785"}
HEAVY = {"rich", "httpx2", "psycopg", "fastapi", "jinja2", "nats", "requests", "aiohttp", "httpx"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Finding = tuple[str, str]  # what (and in which file), more about it
Check = Callable[[Iterable[Finding]], None]


def test_a_file_has_at_most_so_many_lines(check: Check) -> None:
    check(
        (name(file), f"{lines} lines, at most {most}")
        for folder, most in FILE_LINES.items()
        for file in python_files(folder)
        if (lines := len(file.read_text().splitlines())) > most
    )


def test_a_line_has_at_most_so_many_columns(check: Check) -> None:
    files = [*python_files("src", "tests"), *SRC.rglob("*.sql")]
    check(
        (f"{name(file)}:{number}", f"{len(line)} columns, at most {COLUMNS}")
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line) > COLUMNS and "://" not in line
    )


def test_a_function_has_at_most_so_many_lines(check: Check) -> None:
    check(
        (f"{name(file)}:{node.name}", f"{lines} lines, at most {FUNCTION_LINES}")
        for file in python_files("src", "tests")
        for node in ast.walk(tree(file))
        if isinstance(node, Function)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    )


def test_a_function_has_at_most_so_many_positional_parameters(check: Check) -> None:
    def positional(node: Function) -> int:
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        return len(names) - (names[:1] in (["self"], ["cls"]))

    check(
        (f"{name(file)}:{node.name}", f"{count} positional parameters, at most {POSITIONAL}")
        for file in python_files("src")
        for node in ast.walk(tree(file))
        if isinstance(node, Function) and (count := positional(node)) > POSITIONAL
    )


def test_every_public_name_has_a_docstring(check: Check) -> None:
    check(
        (f"{name(file)}:{path}", "no docstring")
        for file in python_files("src")
        for path, node in public(tree(file))
        if not ast.get_docstring(node)
    )


@pytest.mark.parametrize(
    ("calls", "homes"),
    [
        pytest.param(CLOCK_CALLS, CLOCK_HOMES, id="clock and chance"),
        pytest.param(HOP_CALLS, HOP_HOMES, id="thread hops"),
    ],
)
def test_a_banned_call_stands_only_in_its_home(
    check: Check, calls: str, homes: tuple[str, ...]
) -> None:
    check(
        (f"{name(file)}: {used}", f"line {line}; belongs in {' or '.join(homes)}")
        for file in python_files("src")
        if not file.relative_to(SRC).as_posix().startswith(homes)
        for line, used in outside_names(tree(file))
        if re.fullmatch(calls, used)
    )


def test_core_imports_the_standard_library_msgspec_and_rfc8785_only(check: Check) -> None:
    check(
        (f"{name(file)}: {module}", f"line {node.lineno}; not for core")
        for file in python_files("src/ascertain/core")
        for node, module in imports(tree(file))
        if module not in CORE_PACKAGES | sys.stdlib_module_names
    )


def test_importing_the_package_imports_no_driver_client_or_server() -> None:
    code = f"import sys, ascertain; print(*sorted({HEAVY} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert loaded.stdout.split() == []


def test_one_word_per_concept(check: Check) -> None:
    def pattern(phrase: str) -> str:
        words = phrase.replace(" ", r"(?:[ _-]|\s*\n\s*)")
        return rf"(?<![a-z-]){words}(?![a-z])" if phrase.isascii() else words

    known = {phrase: re.compile(pattern(phrase), re.IGNORECASE) for phrase in SYNONYMS}
    check(
        (f"{name(file)}: {phrase}", f"line {line}; say {SYNONYMS[phrase]!r}")
        for file in committed()
        if name(file).startswith(("src/", "docs/", "examples/", "README"))
        and "/contracts/" not in name(file)  # data with vendors' own words
        for phrase, found in known.items()
        for line in lines_of(found, file)
    )


@pytest.mark.parametrize(
    "banned",
    [pytest.param(REGISTRIES, id="registry address"), pytest.param(NOTES, id="unfinished note")],
)
def test_no_committed_file_has(check: Check, banned: str) -> None:
    found = re.compile(banned, re.MULTILINE)
    check(
        (f"{name(file)}:{line}", "not to be committed")
        for file in committed()
        for line in lines_of(found, file)
    )


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Check:
    """Fail with all findings, one a line, and with exceptions that are not needed."""
    excepted = EXCEPTIONS.get(request.node.name, {})

    def check(findings: Iterable[Finding]) -> None:
        found = dict(findings)
        wrong = [f"{what} | {more}" for what, more in found.items() if what not in excepted]
        wrong += [f"{what} | remove from EXCEPTIONS" for what in excepted if what not in found]
        assert not wrong, "\n" + "\n".join(wrong)

    return check


def python_files(*folders: str) -> list[Path]:
    """All Python files under these folders, sorted."""
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


@cache
def committed() -> tuple[Path, ...]:
    """All text files that are, or would be, committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = (ROOT / path for path in listed.stdout.split("\0") if path)
    return tuple(file for file in files if file.is_file() and b"\0" not in file.read_bytes()[:8000])


@cache
def tree(file: Path) -> ast.Module:
    """Parse a file once."""
    return ast.parse(file.read_text(), str(file))


def name(file: Path) -> str:
    """Write a file's path as people do."""
    return file.relative_to(ROOT).as_posix()


def lines_of(found: re.Pattern[str], file: Path) -> list[int]:
    """Give the numbers of the lines on which a pattern begins."""
    text = file.read_text(errors="replace")
    return [text.count("\n", 0, match.start()) + 1 for match in found.finditer(text)]


def public(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """Walk the public classes, their public methods, and the public functions of a module."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.ClassDef) or child.name.startswith("_"):
            continue
        marks = {ast.unparse(mark).rpartition(".")[2] for mark in child.decorator_list}
        if not marks & {"overload", "setter"}:  # said once, on the implementation or the getter
            yield prefix + child.name, child
        if isinstance(child, ast.ClassDef):
            yield from public(child, f"{prefix}{child.name}.")


def imports(module: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Give each import with its top-level package; a relative one counts as ours."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, "ascertain" if node.level else (node.module or "").partition(".")[0]


def outside_names(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Give every dotted name in use, with its imported part written in full, and its line."""
    known: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            known |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom):
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            first, dot, rest = ast.unparse(node).partition(".")
            yield node.lineno, known.get(first, first) + dot + rest
