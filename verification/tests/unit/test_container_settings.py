"""A setting of a service that people can choose reaches its containers, and no other does."""

import re
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from fetching.environment import find_documented
from scripts.documentation.reference.settings import find_classes, get_variable
from shared.runtime.declarations import Service, load_declarations, services_dir

SERVICES = load_declarations().services


def find_own(service: Service) -> AbstractSet[str]:
    """Return the variables that classes of the service define, of those in `.env.example`."""
    return {
        variable
        for _, each in find_classes()
        if each.__module__.startswith(f"{service.package}.")
        for variable in list_variables(each)
        if variable in find_documented()
    }


def list_variables(settings: type[BaseSettings]) -> AbstractSet[str]:
    """Return those of the class itself; those of its bases are another one's."""
    return {
        get_variable(settings, name, field)
        for name, field in settings.model_fields.items()
        if name in settings.__annotations__
    }


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
