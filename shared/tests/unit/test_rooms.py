"""The rooms of `shared` import downwards only: the contract, and the faults that it finds."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import grimp
import pytest

from test_support.waits import HANGS_AFTER_SECONDS

CHECKOUT = Path(__file__).parents[3]
CONTRACT = "The rooms of shared"


def read_layers() -> list[list[str]]:
    """The rooms of each layer, the highest layer first."""
    settings = tomllib.loads((CHECKOUT / "shared/pyproject.toml").read_text())["tool"][
        "importlinter"
    ]
    [contract] = [each for each in settings["contracts"] if each["name"] == CONTRACT]
    return [layer.split(" | ") for layer in contract["layers"]]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("shared", cache_dir=None)


def count_arrows(graph: grimp.ImportGraph) -> Counter[tuple[str, str]]:
    """Imports between modules of different rooms, by (importing room, imported room)."""
    arrows: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            rooms = room_of(importer), room_of(imported)
            if rooms[0] != rooms[1]:
                arrows[rooms] += 1
    return arrows


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_every_import_between_rooms_goes_down(graph: grimp.ImportGraph) -> None:
    """`pytest -s` prints the arrows."""
    height = {
        room: height for height, rooms in enumerate(reversed(read_layers())) for room in rooms
    }

    arrows = count_arrows(graph)

    for (importer, imported), count in arrows.most_common():
        sys.stdout.write(f"{importer} -> {imported}: {count}\n")
    assert arrows
    assert [each for each in arrows if height[each[0]] <= height[each[1]]] == []


def test_the_outbox_needs_only_health_checks_of_web(graph: grimp.ImportGraph) -> None:
    imports = graph.find_matching_direct_imports(
        import_expression="shared.outbox.* -> shared.web.*"
    )

    assert {each["imported"] for each in imports} == {"shared.web.health"}


@pytest.mark.parametrize("room", [room for rooms in read_layers() for room in rooms])
def test_the_card_of_a_room_names_files_that_exist(room: str) -> None:
    card = importlib.import_module(f"shared.{room}").__doc__ or ""

    tests = re.findall(r"`(tests/\S+\.py)`", card)
    assert tests
    assert [each for each in tests if not (CHECKOUT / "shared" / each).exists()] == []
    modules = re.findall(r"`(\w+\.py)`", card)
    assert modules
    folder = CHECKOUT / "shared/src/shared" / room
    assert [each for each in modules if not (folder / each).exists()] == []


@pytest.mark.parametrize(
    ("module", "offence"),
    [
        ("runtime/postgres.py", "from shared.messaging import wire"),
        ("messaging/records.py", "from shared.eventsourcing.codec import Codec"),
        ("web/idempotency.py", "from shared.projections import rebuild"),
        ("inbox/consumer.py", "from shared.outbox.relay import Relay"),
        ("a_new_room.py", ""),
    ],
)
def test_an_import_upwards_is_refused(tmp_path: Path, module: str, offence: str) -> None:
    """The negative control; between rooms of one layer as well, and so is a room without place."""
    shutil.copytree(CHECKOUT / "shared/src", tmp_path / "src")
    shutil.copy(CHECKOUT / "shared/pyproject.toml", tmp_path)
    with (tmp_path / "src/shared" / module).open("a") as file:
        file.write(f"\n{offence}\n")

    ended = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
        check=False,
    )

    assert ended.returncode == 1, ended.stderr
    assert f"{CONTRACT} BROKEN" in ended.stdout
