"""The documentation tells the truth: its programs run, its links lead somewhere, its names exist."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from shellkit import LocalExecutor, ShellResult

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
#: Seconds that one program of a page may take.
LIMIT = 60
#: What a program prints stands behind this mark, a line of output each.
EXPECTED = re.compile(r"#> ?(.*)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
#: Names that begin like a module and are none: a file, and attributes of a trace.
NO_MODULES = {"shellkit.toml", "shellkit.shell_state", "shellkit.truncated"}


def name_of(page: Path) -> str:
    """Return how a page is called in messages."""
    return page.relative_to(ROOT).as_posix()


def programs() -> Iterator[Any]:
    """Yield the Python blocks of all pages as parameters named page:line."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```python(?: requires (\w+))? *\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            marks = [pytest.mark.requires(found[1])] if found[1] else []
            line = text.count(chr(10), 0, found.start()) + 1
            yield pytest.param(found[2], id=f"{name_of(page)}:{line}", marks=marks)


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchor(heading: str) -> str:
    """Return the fragment that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def exists(name: str) -> bool:
    """Return whether a dotted name is a module, or something that a module or class holds."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(value, part):
                return part in {field.name for field in getattr(value, "__attrs_attrs__", ())}
            value = getattr(value, part)
        return True
    return False


@pytest.mark.parametrize("program", list(programs()))
def test_a_program_runs_and_prints_what_the_page_says(program: str, tmp_path: Path) -> None:
    """Every Python block runs on its own, without a warning, and prints exactly the lines after its `#>` marks."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if expected := EXPECTED.findall(program):
        assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    """Every relative link leads to a file of the project, and its fragment to a heading there."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or not file.is_relative_to(ROOT):
            wrong.append(target)
        elif fragment:
            headings = re.findall(r"^#+ (.*)$", FENCED.sub("", file.read_text(encoding="utf-8")), re.MULTILINE)
            wrong += [target] if fragment not in map(anchor, headings) else []
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_exist(page: Path) -> None:
    """Every `shellkit.x` in backticks can be imported or looked up, and every path in backticks is there."""
    words = re.findall(r"`([^`\n]+)`", prose(page))
    names = {found[0] for word in words if (found := re.match(r"shellkit(?:\.\w+)+", word))}
    paths = {word for word in words if re.fullmatch(r"(?:shellkit|tests|benchmarks|docs|\.ci)/[\w./-]*", word)}
    assert [name for name in sorted(names - NO_MODULES) if not exists(name)] == []
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_the_index_lists_every_page() -> None:
    """Every page is linked from `docs/index.md`."""
    linked = set(re.findall(r"\]\(([^)#\s]+)\)", prose(DOCS / "index.md")))
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"index.md"} - linked == set()


def test_the_quickstart_names_every_field_and_option() -> None:
    """The quickstart names each field of a result, each option of an executor and each argument of `run`."""
    words = set(re.findall(r"`(\w+)`", prose(DOCS / "quickstart.md")))
    fields = {field.name for field in attrs.fields(ShellResult)}
    options = {name for call in (LocalExecutor, LocalExecutor.run) for name in inspect.signature(call).parameters}
    assert (fields | options) - {"self"} - words == set()


def test_the_glossary_is_in_order() -> None:
    """The words of the glossary are sorted, and none stands there twice."""
    words = re.findall(r"^\*\*([^*]+)\*\*", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(words) > 40
    assert words == sorted(set(words), key=str.casefold)


def test_the_readme_has_the_two_commands_that_ci_runs() -> None:
    """The README holds exactly two `sh` blocks of one line each: the demo, then the tests."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert [block.count("\n") for block in blocks] == [1, 1]
    assert blocks[0].rstrip().endswith("shellkit demo")
    assert "pytest" in blocks[1]
