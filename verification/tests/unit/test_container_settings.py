"""A setting of a service that people can choose reaches its containers, and no other does."""

import re
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from fetching.environment import find_documented
from scripts.documentation.reference.settings import read_declared
from shared.runtime.declarations import Service, load_declarations, services_dir

SERVICES = load_declarations().services


def find_own(service: Service) -> AbstractSet[str]:
    """Return the variables that classes of the service add, of those in `.env.example`."""
    declared = read_declared().items()
    return {name for name, each in declared if service.folder in each.readers} & find_documented()


def find_given(folder: Path) -> AbstractSet[str]:
    """Return the variables that Compose hands on without a value of its own."""
    texts = (path.read_text() for path in folder.glob("compose*.yml"))
    return {name for text in texts for name in re.findall(r"^ +([A-Z_]+):$", text, re.MULTILINE)}


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.folder)
def test_what_people_choose_reaches_a_container(service: Service) -> None:
    assert find_own(service) - find_given(services_dir() / service.folder) == set()


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.folder)
def test_what_reaches_a_container_is_documented(service: Service) -> None:
    assert find_given(services_dir() / service.folder) - find_documented() == set()


def test_there_are_such_settings() -> None:
    assert sum(len(find_own(service)) for service in SERVICES) > 10
