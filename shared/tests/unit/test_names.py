"""Shared knows no service by name: no process, scope, topic, event type or table of one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.runtime.declarations import load_declarations, services_dir

SHARED = Path(__file__).parents[2] / "src/shared"
CREATED = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)
LEFT_OUT = {".pyc", ".sql"}
"""Applied migrations never change, words of their comments included."""
OF_THE_FIELD = {"batches"}
"""Names of tables that are words of Kafka, too."""
NAMED = r"(?:[\"'`]|\b(?:FROM|INTO|JOIN|ON|TABLE|UPDATE) )"
"""What stands before a plain word that is a name there, and not a word of a sentence."""


def names() -> set[str]:
    """Every name that belongs to a service."""
    declared = load_declarations()
    return {
        *declared.scopes,
        *declared.topics,
        *declared.internal_topics,
        *(each for topic in declared.topics.values() for each in topic.types),
        *(process.name for process in declared.processes),
        *(
            name
            for service in declared.services
            for name in (
                service.name,
                service.folder,
                service.package,
                *tables(service.folder, service.package),
            )
        ),
    }


def tables(folder: str, package: str) -> Iterator[str]:
    for script in (services_dir() / folder / "src" / package).glob("migrations/*.sql"):
        yield from CREATED.findall(script.read_text())


def pattern() -> re.Pattern[str]:
    longest_first = sorted(names() - OF_THE_FIELD, key=len, reverse=True)
    plain = "|".join(name for name in longest_first if name.isalpha())
    other = "|".join(re.escape(name) for name in longest_first if not name.isalpha())
    return re.compile(rf"(?<![\w-])(?:{other})(?![\w-])|{NAMED}(?:{plain})(?![\w-])")


def names_in(folder: Path) -> list[str]:
    """Each file and line with a name of a service."""
    name = pattern()
    return [
        f"{path.relative_to(folder)}:{number}: {line.strip()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in LEFT_OUT
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if name.search(line)
    ]


def test_shared_names_nothing_that_belongs_to_a_service() -> None:
    assert names_in(SHARED) == []


@pytest.mark.parametrize(
    "line",
    [
        'SERVICE = "users"',
        "the processes of `orders`",
        "SELECT count(*) FROM cells",
        "a reader such as orders-worker",
        'require_scope("items:read")',
        "the first record of orders.v1",
        "import users_svc",
        "the type user-moved",
    ],
)
def test_a_planted_name_is_found(tmp_path: Path, line: str) -> None:
    """The negative control."""
    (tmp_path / "planted.py").write_text(f"a machine without other users\n{line}\n")

    assert names_in(tmp_path) == [f"planted.py:2: {line}"]
