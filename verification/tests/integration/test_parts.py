"""`make without` and copier in copies of this checkout: what is left is checked as this one is."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_stack.progress import tell
from local_stack.testing import new_folder
from scripts.parts.declared import load_parts
from scripts.parts.removal import find_mentions, plan_cut
from test_support.checkout_copy import Copy, copied_checkout
from test_support.left_out import COMBINATIONS, PARTS

CHECKOUT = Path(__file__).resolve().parents[3]
COPIER = ("tool", "run", "--from", "copier==9.19.1", "copier")
COMMAND_SECONDS_MAX = 120


@pytest.fixture
def copy() -> Iterator[Copy]:
    with copied_checkout() as copied:
        yield copied


def run_here(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", "without", *options],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
    )


def test_without_a_part_all_are_listed() -> None:
    listed = run_here()

    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == PARTS


def test_what_would_go_is_shown_and_nothing_changes() -> None:
    shown = run_here("part=kubernetes", "args=--dry-run")

    assert shown.returncode == 0
    assert "  - infra/k8s/kustomization.yaml\n" in shown.stdout
    assert "  ~ README.md (" in shown.stdout
    assert (CHECKOUT / "infra/k8s/kustomization.yaml").exists()


def test_an_unknown_part_is_one_line() -> None:
    refused = run_here("part=moon", "args=--dry-run")

    assert refused.returncode == 2
    assert refused.stderr.startswith("hometown: 'moon' is no part; there are: benchmarks, ")


@pytest.mark.long
@pytest.mark.parametrize("names", COMBINATIONS)
def test_what_is_left_passes_its_checks(copy: Copy, names: str) -> None:
    cut = plan_cut(CHECKOUT, names.split(","))

    copy.printed("make", "without", f"part={names}")

    assert find_mentions(copy.root, cut.pattern) == []
    assert not {part.name for part in cut.parts} & set(load_parts(copy.root))
    copy.git("add", "-A")
    copy.git("commit", "-q", "-m", f"without {names}")
    copy.printed("make", "check")
    assert copy.git("status", "--porcelain") == "", "what is generated is up to date"
    tell(f"without {names}: {count_lines(copy)} lines are left")


def count_lines(copy: Copy) -> int:
    files = [copy.root / name for name in copy.git("ls-files", "*.py", "*.md").split()]
    return sum(len(file.read_text().splitlines()) for file in files)


def test_uncommitted_changes_are_not_mixed_with_a_removal(copy: Copy) -> None:
    (copy.root / "README.md").write_text("# Mine\n")

    refused = copy.run("make", "without", "part=kubernetes")

    assert refused.returncode == 2
    assert "there are uncommitted changes: commit them, or use args=--force" in refused.stdout
    assert (copy.root / "infra/k8s").exists()


@pytest.fixture
def template() -> Iterator[Copy]:
    """This checkout as people find it: a repository with a tag."""
    with copied_checkout() as copied:
        copied.git("tag", "v0.1.0")
        yield copied


@pytest.mark.long
def test_a_copy_takes_a_later_release_over_and_keeps_what_is_its_own(template: Copy) -> None:
    folder = new_folder()
    kept = [part for part in PARTS if part not in ("kubernetes", "benchmarks")]
    mine = Copy(root=folder / "my-shop")
    answers = ["--data", f"keep={json.dumps(kept)}", "--data", "name=myshop"]
    copier(template, "copy", "--trust", "--defaults", *answers, str(template.root), str(mine.root))
    mine.git("init", "-q")
    mine.git("add", "-A")
    mine.git("commit", "-q", "-m", "from the template")

    assert not (mine.root / "infra/k8s").exists()
    assert not (mine.root / "benchmarks").exists()
    assert not (mine.root / "copier.yml").exists()
    assert (mine.root / "README.md").read_text().startswith("# Myshop\n")
    assert mine.run("git", "grep", "-qi", "hometown", "--", ":!*.sql").returncode == 1

    # What its owner changes: a document, and a rule of their own.
    readme = mine.root / "README.md"
    readme.write_text(readme.read_text() + "\nOur own words.\n")
    rules = mine.root / "users-svc/src/users_svc/membership.py"
    rules.write_text('"""Our own rules."""\n')
    mine.git("add", "-A")
    mine.git("commit", "-q", "-m", "ours")

    # What the next release changes: the same document, a file, and a part that was left out.
    upstream = template.root / "README.md"
    upstream.write_text(upstream.read_text().replace("# Hometown\n", "# Hometown\n\nNews.\n", 1))
    changed = template.root / "shared/src/shared/news.py"
    changed.write_text('"""News of Hometown."""\n')
    (template.root / "benchmarks/news.py").write_text('"""News."""\n')
    template.git("add", "-A")
    template.git("commit", "-q", "-m", "news")
    template.git("tag", "v0.2.0")
    copier(mine, "update", "--trust", "--defaults", "--conflict", "inline")

    assert "\nNews.\n" in readme.read_text()
    assert readme.read_text().endswith("\nOur own words.\n")
    assert rules.exists()
    assert (mine.root / "shared/src/shared/news.py").read_text() == '"""News of Myshop."""\n'
    assert not (mine.root / "benchmarks").exists()
    assert mine.run("git", "grep", "-n", "^<<<<<<< ", "--", "*.md", "*.toml").returncode == 1
    mine.printed("make", "lint")


def copier(copy: Copy, *arguments: str) -> str:
    return copy.printed(str(CHECKOUT / ".tools/bin/uv"), *COPIER, *arguments)
