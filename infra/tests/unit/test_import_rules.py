"""The rules between packages hold for every service that is declared."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.runtime.declarations import services_dir
from test_support.waits import HANGS_AFTER_SECONDS

DECLARATION = 'name = "notes"\npackage = "notes_svc"\n[processes.api]\nport = 8099\n'


def check(services: Path, *sources: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "scripts.check_imports"],
        env=os.environ
        | {"SERVICES_DIR": str(services), "PYTHONPATH": os.pathsep.join(map(str, sources))},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
        check=False,
    )


def test_every_import_is_allowed() -> None:
    ended = check(services_dir())

    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("No service knows another one KEPT") == 1
    assert "The rooms of" in ended.stdout


@pytest.mark.parametrize(
    ("offence", "broken"),
    [
        ("import users_svc", "No service knows another one"),
        ("import lessons", "Nothing needs a lesson"),
        ("", None),
    ],
    ids=["another service", "a lesson", "nothing"],
)
def test_a_new_service_is_under_the_rules(tmp_path: Path, offence: str, broken: str | None) -> None:
    """The negative control: a folder with a declaration is all that the rules need."""
    for declaration in services_dir().glob("*/service.toml"):
        folder = tmp_path / declaration.parent.name
        folder.mkdir()
        (folder / declaration.name).write_text(declaration.read_text())
    package = tmp_path / "notes-svc/src/notes_svc"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(offence + "\n")
    (tmp_path / "notes-svc/service.toml").write_text(DECLARATION)

    ended = check(tmp_path, package.parent)

    assert (ended.returncode == 0) is (broken is None), ended.stdout + ended.stderr
    assert broken is None or f"{broken} BROKEN" in ended.stdout
