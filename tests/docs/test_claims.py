"""Every claim of the documents names a test that exists, and the README's code does as it says."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ascertain.contracts import catalogue

ROOT = Path(__file__).parents[2]
PAGES = ("docs/guarantees.md", "docs/zh/guarantees.md")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("page", PAGES)
def test_every_claim_names_a_test_that_exists(page):
    named = NAMED.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(named) >= 13, "the page names its tests"
    missing = [f"{p}::{t}" for p, t in named if t not in functions(ROOT / p)]
    assert not missing


def test_both_languages_make_the_same_claims():
    claims = [NAMED.findall((ROOT / page).read_text(encoding="utf-8")) for page in PAGES]
    assert claims[0] == claims[1]


def test_every_test_that_any_page_names_exists():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {path}::{name}"
        for page in pages
        for path, name in NAMED.findall(page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists() or name not in functions(ROOT / path)
    ]
    assert not missing


def test_every_extra_that_is_named_exists():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(told["project"]["optional-dependencies"])
    named = {
        extra
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
        for given in re.findall(r"'(?:\.|ascertain)\[([\w,]+)\]'", page.read_text("utf-8"))
        for extra in given.split(",")
    }
    assert {"http", "postgres", "server", "otel"} <= named <= extras


@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_readmes_twenty_lines_run_and_print_what_they_say(page, tmp_path):
    text = (ROOT / page).read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    said = re.findall(r"print\(.*\)  # (.*)", code)
    (tmp_path / "twenty.py").write_text(code, encoding="utf-8")
    for _ in range(2):  # the second run creates nothing either
        ran = subprocess.run(
            [sys.executable, "twenty.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert ran.stdout.splitlines() == said


@pytest.mark.parametrize(
    ("page", "said"), [("README.md", " operations as"), ("README.zh.md", " 种操作的数据")]
)
def test_the_readme_counts_the_contracts_that_are_shipped(page, said):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"{len(catalogue.shipped())}{said}" in text


def test_links_of_the_documents_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert not broken
