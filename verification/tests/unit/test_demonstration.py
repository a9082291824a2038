"""What the demonstration reports where nothing runs, to readers with make and without."""

import json
import sys
from pathlib import Path

import pytest

from local_stack import issuer
from local_stack.ports import find_free
from local_stack.run_folder import RunFolder
from scripts import demo


@pytest.mark.parametrize(
    ("published", "start"),
    [
        ("null", "make up"),
        ('{"orders-api": "http://127.0.0.1:8002"}', "docker compose up --wait"),
    ],
)
def test_without_a_stack_it_names_the_command_that_starts_one(
    published: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["scripts.demo"])
    monkeypatch.setenv(demo.PUBLISHED, published)
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path))
    expected = f"^hometown: the stack is not running; start it with: {start}$"

    with pytest.raises(SystemExit, match=expected):
        demo.main()

    issuer.establish(RunFolder(tmp_path))
    addresses = {"analytics-api": f"http://127.0.0.1:{find_free()}"}
    (tmp_path / "addresses.json").write_text(json.dumps(addresses))

    with pytest.raises(SystemExit, match=expected):
        demo.main()
