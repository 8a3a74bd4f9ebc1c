"""The repository's own texts keep their promises: links lead somewhere, commands exist, versions agree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import ogive

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
PICTURES = sorted(
    path
    for folder in ("docs", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".png", ".svg", ".jpg")
)
FIRST_SCREEN = 40  # lines
LARGEST = 200_000  # bytes of a picture

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def links(page: Path) -> list[str]:
    """What a page links to or shows, but for the web, places in itself, and code."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = re.findall(r"!?\[[^\]]*\]\(\s*<?([^)>\s]+)", prose) + re.findall(r"<img[^>]+src=[\"']([^\"']+)", prose)
    found += re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, flags=re.M)
    return [link for link in found if not re.match(r"\w+:|#", link)]


def project() -> dict[str, str]:
    return tomllib.loads(text("pyproject.toml"))["project"]


def make(*arguments: str) -> str:
    done = subprocess.run(["make", "-C", str(ROOT), "--no-print-directory", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- pages


def test_the_first_screen_says_how_to_see_it_and_how_to_test_it():
    first = "\n".join(text("README.md").splitlines()[:FIRST_SCREEN])
    for command in ("make demo", "make test"):
        assert re.search(rf"^\s*{command}\b", first, flags=re.M)


def test_the_readme_shows_a_picture_and_links_to_the_docs():
    found = links(ROOT / "README.md")
    assert any(link.endswith(".png") for link in found)
    assert "docs/architecture.md" in found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page):
    lost = [link for link in links(page) if not (page.parent / link.partition("#")[0]).exists()]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_place_that_a_link_names_is_a_heading(page):
    for link in links(page):
        file, _, place = link.partition("#")
        if place and file.endswith(".md"):
            titles = re.findall(r"^#+\s+(.+)$", (page.parent / file).read_text(encoding="utf-8"), flags=re.M)
            anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert place in anchors


def test_every_page_of_the_docs_is_reached_from_the_readme():
    reached, new = set(), {ROOT / "README.md"}
    while new:
        page = new.pop()
        reached.add(page)
        found = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        new |= {target for target in found if target.suffix == ".md" and target.is_file()} - reached
    assert {page.name for page in PAGES if page.parent.name == "docs"} - {page.name for page in reached} == set()


def test_pictures_are_small():
    assert {path.name: size for path in PICTURES if (size := path.stat().st_size) >= LARGEST} == {}


# --- commands


@needs_make
def test_every_target_that_help_lists_exists_and_is_documented():
    listed = re.findall(r"^\s*make ([a-z-]+)", make("help"), flags=re.M)
    assert {"demo", "test", "slow", "check", "bench"} <= set(listed)
    for target in listed:
        make("--dry-run", target)
    assert set(re.findall(r"^([a-z]+):.*", text("Makefile"), flags=re.M)) == set(listed)


@needs_make
def test_every_make_command_that_a_page_names_is_listed():
    listed = make("help")
    for page in PAGES:
        named = re.findall(r"(?:^|`)make ([a-z]+)\b", page.read_text(encoding="utf-8"), flags=re.M)
        assert [target for target in named if f"make {target} " not in listed] == []


def test_the_machine_checks_what_a_user_can_check():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text(encoding="utf-8").splitlines() if line.startswith("make ")]
    assert "make test" in commands and "make check" in commands


def test_every_command_of_the_shell_that_the_readme_names_exists(capsys):
    from ogive.cli import main

    assert main(["--help"]) == 0
    known = capsys.readouterr().out
    named = re.findall(r"^ogive ([a-z]+)", text("README.md"), flags=re.M)
    assert named
    assert [command for command in named if f" {command} " not in known] == []


# --- versions


def test_every_file_names_one_version():
    version = project()["version"]
    assert ogive.__version__ == version
    assert re.search(rf"^## \[?{re.escape(version)}\]?(?:\s|$)", text("CHANGELOG.md"), flags=re.M)
    assert re.search(r"^version: [\"']?([^\s\"']+)", text("CITATION.cff"), flags=re.M).group(1) == version


def test_the_licence_is_the_one_declared():
    licence = project()["license"]
    assert licence in text("LICENSE").partition("\n")[0]
    assert f"Licence: {licence}" in text("README.md")
    assert re.search(rf"^license: {re.escape(licence)}$", text("CITATION.cff"), flags=re.M)
