"""The page of modules: which one imports which, in each service and in `shared`."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError
from pathlib import Path
from typing import NamedTuple

import grimp

from scripts.changes import CHECKOUT, ChangeError
from scripts.documentation.concepts import layered
from scripts.documentation.markdown import code, codes, join_parts, table
from shared.runtime.declarations import load_declarations

SHARED = "shared"


class Module(NamedTuple):
    """A module, or a room: a folder of modules. Names are those within its package."""

    path: Path
    """Of its file or folder, from the checkout."""
    imports: frozenset[str]
    shared: frozenset[str]
    """The rooms of `shared` that it imports from."""


Modules = Mapping[str, Module]
"""By their names."""


def write() -> str:
    """Raises ChangeError: modules of a service, or rooms, import each other in a circle."""
    return join_parts(
        "# Modules and their imports",
        "An arrow leads down, from a module to one that it imports; an import that follows from"
        " other arrows has none. Of a service with an event store, all modules are drawn; of the"
        " others, a box can be a room, which is a folder of modules. `make imports` verifies the"
        " rules for imports, which the `pyproject.toml` of each folder has.",
        *write_services(),
        *write_package(SHARED, to_rooms(read_modules(SHARED, SHARED))),
    )


def write_services() -> Iterator[str]:
    for service in load_declarations().services:
        modules = read_modules(service.folder, service.package)
        yield from write_package(
            service.folder, modules if service.has_event_store else to_rooms(modules)
        )


def write_package(folder: str, modules: Modules) -> Iterator[str]:
    yield f"## {folder}"
    graph = {name: module.imports for name, module in modules.items()}
    try:
        diagram = layered.draw(layered.reduce(graph), f"the modules of {folder} and their imports")
    except CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise ChangeError(f"modules or rooms of {folder} import in a circle: {circle}") from None
    yield diagram.to_html()
    yield table(
        ("name", "about", "imports", f"imports from {code(SHARED)}"),
        (
            (
                f"[`{name}`](../{module.path})",
                read_summary(module.path),
                codes(sorted(module.imports)),
                codes(sorted(module.shared)),
            )
            for name, module in modules.items()
        ),
    )


def read_modules(folder: str, package: str) -> Modules:
    """Return the modules of a package in a folder.

    A room is among them if its `__init__` imports something, or is imported itself.
    """
    graph = grimp.build_graph(package, *({SHARED} - {package}), cache_dir=None)
    names = {name for name in graph.modules if name.startswith(f"{package}.")}
    imported = {name: graph.find_modules_directly_imported_by(name) for name in names}
    used = frozenset[str]().union(*imported.values())
    modules = {}
    for name in sorted(names):
        path = find_module(Path(folder, "src", *name.split(".")))
        if path.suffix or name in used or imported[name]:
            modules[name.removeprefix(f"{package}.")] = Module(
                path,
                frozenset(each.removeprefix(f"{package}.") for each in imported[name] & names),
                frozenset(
                    each.split(".")[1]
                    for each in imported[name] - names
                    if each.startswith(f"{SHARED}.")
                ),
            )
    return modules


def find_module(path: Path) -> Path:
    """Return the path of a file with a module, or of a folder with modules."""
    file = path.with_suffix(".py")
    return file if (CHECKOUT / file).is_file() else path


def to_rooms(modules: Modules) -> Modules:
    """Return the rooms of a package, and the modules that are in none."""
    rooms: dict[str, Module] = {}
    for name, module in modules.items():
        room, _, within = name.partition(".")
        known = rooms.get(room, Module(module.path, frozenset(), frozenset()))
        path = module.path.parents[within.count(".")] if within else module.path
        imports = {each.partition(".")[0] for each in module.imports} - {room}
        rooms[room] = Module(path, known.imports | imports, known.shared | module.shared)
    return rooms


def read_summary(path: Path) -> str:
    """Return the first line of what a module, or the `__init__` of a room, says about itself."""
    file = CHECKOUT / path
    parsed = ast.parse((file if file.is_file() else file / "__init__.py").read_text())
    first, *_ = (ast.get_docstring(parsed) or "").splitlines() or [""]
    return first
