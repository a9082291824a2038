"""Copies that copier makes of this checkout, as people would make them."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from local_stack.testing import new_folder
from scripts.copying import TEMPLATE
from test_support.checkout_copy import Copy
from test_support.left_out import PARTS

OTHERS = [name for name in PARTS if name != TEMPLATE]
"""The parts that a copy can have."""
RELEASES = {"v0.1.0": "587b115317eaf70e3797c90648c07c70f7df7174"}
"""The commit of each tag, oldest first: a clone has them only if it has the history."""
COPIER = (sys.executable, "-m", "copier")


@contextmanager
def made_copy(
    template: Copy, tag: str, *, name: str, without: Sequence[str], is_compiled: bool = False
) -> Iterator[Copy]:
    """Make a copy of a release, and commit it; remove it at the end."""
    folder = new_folder()
    answers = ["--data", f"without={json.dumps(without)}", "--data", f"name={name}"]
    try:
        copy = Copy(root=folder / "my shop", is_compiled=is_compiled)
        run_copier(
            template, "copy", *answers, f"--vcs-ref={tag}", str(template.root), str(copy.root)
        )
        copy.git("init", "-q")
        copy.commit("from the template")
        yield copy
    finally:
        shutil.rmtree(folder)


def run_copier(copy: Copy, *arguments: str) -> str:
    """Return what `copier copy` or `copier update` printed, without questions."""
    action, *others = arguments
    return copy.printed(*COPIER, action, "--trust", "--defaults", *others)
