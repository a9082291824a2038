"""The files for those who copy and contribute: the changelog, and the owners of folders."""

import re
import tomllib
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
CHANGELOG = CHECKOUT / "CHANGELOG.md"
OWNERS = CHECKOUT / ".github/CODEOWNERS.example"

SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n)*)", re.MULTILINE)
RELEASED = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)")
KINDS = (
    *("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"),
    *("Migrations", "Settings", "To do in a copy"),
)
"""Those of Keep a Changelog, and three for the owner of a copy."""

OWNER = re.compile(r"@[\w-]+/[\w-]+")

Release = tuple[tuple[int, ...], date]


def find_flaws(text: str, version: str) -> list[str]:
    """What is wrong in a changelog of a project of this version."""
    sections = SECTION.findall(text)
    flaws = [] if sections and sections[0][0] == "[Unreleased]" else ["Unreleased comes first"]
    releases: list[Release] = []
    for title, body in sections[1:]:
        if match := RELEASED.fullmatch(title):
            *numbers, day = match.groups()
            releases.append((tuple(map(int, numbers)), date.fromisoformat(day)))
        else:
            flaws.append(f"{title}: not [VERSION] - DATE")
        if "\n### To do in a copy\n" not in body:
            flaws.append(f"{title}: says nothing to the owner of a copy")
    for newer, older in pairwise(releases):
        if newer[0] <= older[0] or newer[1] < older[1]:
            flaws.append(f"{newer[0]} stands before {older[0]}")
    if not releases or releases[0][0] != tuple(map(int, version.split("."))):
        flaws.append(f"the newest release is not {version}, the version of pyproject.toml")
    kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
    return flaws + [f"{kind}: no kind of change" for kind in kinds if kind not in KINDS]


def read_version(path: Path) -> str:
    return str(tomllib.loads(path.read_text())["project"]["version"])


def test_the_changelog_has_every_release_in_order() -> None:
    assert find_flaws(CHANGELOG.read_text(), read_version(CHECKOUT / "pyproject.toml")) == []


TO_DO = "### To do in a copy\n\n- Nothing.\n"
GOOD = (
    f"# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n{TO_DO}"
    f"\n## [0.1.0] - 2026-11-25\n\n{TO_DO}"
)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("## [Unreleased]\n\n", ""),
        ("0.2.0", "0.0.9"),
        ("0.2.0", "0.3.0"),
        ("2026-12-01", "2026-11-01"),
        ("] - 2026-12-01", "]"),
        (TO_DO, ""),
        ("To do in a copy", "News"),
    ],
)
def test_a_wrong_changelog_is_found(good: str, bad: str) -> None:
    """The negative control."""
    assert good in GOOD
    assert find_flaws(GOOD, "0.2.0") == []
    assert find_flaws(GOOD.replace(good, bad), "0.2.0") != []


def test_all_packages_have_the_version_of_the_project() -> None:
    versions = {read_version(path) for path in CHECKOUT.glob("*/pyproject.toml")}

    assert versions == {read_version(CHECKOUT / "pyproject.toml")}


def test_decisions_of_the_changelog_are_named_by_their_numbers() -> None:
    links = re.findall(r"\[(\d{4})\]\((docs/adr/[^)]+)\)", CHANGELOG.read_text())

    assert links
    for number, path in links:
        assert Path(path).name.startswith(f"{number}-")
        assert (CHECKOUT / path).is_file()


def read_owners() -> dict[str, list[str]]:
    """The owners of each path."""
    lines = [line.split() for line in OWNERS.read_text().splitlines()]
    return {line[0]: line[1:] for line in lines if line and not line[0].startswith("#")}


def test_every_path_with_an_owner_exists() -> None:
    owned = read_owners()
    missing = [path for path in owned if path != "*" and not [*CHECKOUT.glob(path.lstrip("/"))]]

    assert missing == []
    assert all(OWNER.fullmatch(each) for owners in owned.values() for each in owners)
    assert all(owners for owners in owned.values())


def test_every_folder_with_code_has_an_owner() -> None:
    folders = {path.parent for path in CHECKOUT.glob("*/pyproject.toml")}
    folders |= {path.parent for path in CHECKOUT.glob("*/__init__.py")}

    assert {f"/{folder.name}/" for folder in folders} <= read_owners().keys()
