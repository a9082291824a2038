"""From a clone to a change of one's own that an API shows, as README.md describes it."""

import json
import re
import time
from collections.abc import Iterator

import pytest

from local_stack.progress import tell
from local_stack.settings import usual_run_dir
from scripts.changes import CHECKOUT
from test_support.changed_files import change
from test_support.checkout_copy import Copy, copied_checkout
from test_support.interrupted import interrupted
from test_support.system.eventually import eventually

SECTION = re.search(
    r"^## Change it\n(.+?)^```sh\n(.+?)^```$",
    (CHECKOUT / "README.md").read_text(),
    re.DOTALL | re.MULTILINE,
)
MINE = "this user is nowhere to be found"


@pytest.fixture
def copy() -> Iterator[Copy]:
    with copied_checkout() as copied:
        try:
            yield copied
        finally:
            copied.run("make", "clean")


@pytest.mark.verify(part="new")
def test_a_change_is_seen_after_it_is_saved(copy: Copy) -> None:
    assert SECTION, "README.md has no such section"
    text, curl = SECTION.groups()
    words, path = re.findall(r"`([^`]+)`", text)[1:3]
    began = time.monotonic()
    copy.printed("make", "demo")
    folder = usual_run_dir("processes", copy.root / ".run")
    api = json.loads((folder / "addresses.json").read_text())["users-api"]
    # curl would ask a proxy that is set here.
    curl = "no_proxy=127.0.0.1 " + curl.replace("http://127.0.0.1:8001", api)
    shown = time.monotonic()

    with interrupted(["make", "dev"], copy.root, copy.environment) as printed:
        assert any(line.startswith("watching ") for line in printed.lines)
        assert words in copy.printed("bash", "-c", curl)
        change(copy.root / path, words, MINE)
        saved = time.monotonic()
        eventually(lambda: copy.printed("bash", "-c", curl), lambda seen: MINE in seen, what=MINE)

    tell(f"{shown - began:.1f} s to the answer of `make demo`, {saved - shown:.1f} s to the save, ")
    tell(f"{time.monotonic() - saved:.1f} s until the API says it")
