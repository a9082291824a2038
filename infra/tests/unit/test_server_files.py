"""No container depends on the modes of the files in a checkout, which follow from its umask."""

import re
import stat
from pathlib import Path

import pytest

from containers import server_files
from local_stack.settings import CHECKOUT
from test_support.compose_files import read_compose

COMPOSE_FILES = sorted(
    each for each in CHECKOUT.glob("**/*compose*.yml") if ".venv" not in each.parts
)
DOCKERFILES = sorted(each for each in CHECKOUT.glob("**/Dockerfile") if ".venv" not in each.parts)


def test_the_files_can_be_read_by_any_user(tmp_path: Path) -> None:
    source, root = tmp_path / "source", tmp_path / "root"
    for name in ("kafka/server.properties", "jaeger/config.yaml"):
        (source / name).parent.mkdir(parents=True)
        (source / name).write_text(name)
        (source / name).chmod(0o600)

    for _ in range(2):
        server_files.copy(root, source)

    file = root / "config/kafka/server.properties"
    assert file.read_text() == "kafka/server.properties"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert (root / "config/jaeger/config.yaml").exists()


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_no_container_mounts_a_part_of_the_checkout(file: Path) -> None:
    services = read_compose(file).get("services", {})

    mounts = [str(mount) for each in services.values() for mount in each.get("volumes", [])]

    assert [mount for mount in mounts if re.match(r"[./~]|.*'type': 'bind'", mount)] == []


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_what_an_image_copies_gets_modes_of_its_own(file: Path) -> None:
    lines = file.read_text().replace("\\\n", " ").splitlines()

    assert [line for line in lines if re.match(r"COPY (?!--chmod=|--from=)", line)] == []
    copied = [line for line in lines if re.search(r"\bcp ", line)]
    assert [line for line in copied if "chmod -R a+rX" not in line] == []
