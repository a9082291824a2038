"""`make new thing=service`: names and their forms, ports, and no change after an error."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import changes
from scripts.changes import CHECKOUT, ChangeError
from scripts.new import service
from scripts.new.addition import add
from scripts.new.service import choose_ports, plan_service
from scripts.new.skeletons import read_service
from scripts.new.words import NewError, Words, derive_singular, parse_words
from shared.runtime.declarations import load_declarations
from test_support.waits import HANGS_AFTER_SECONDS

PAYMENTS = Words(plural="payments", singular="payment")
INVOICES = Words(plural="invoices", singular="invoice")
UNITS = Words(plural="units", singular="unit")
LONGEST = Words(plural="abcdefghijklmnos", singular="abcdefghijklmnop")


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("things-svc/src/things_svc/thing.py", "payments-svc/src/payments_svc/payment.py"),
        ("class AddThing(ThingsSettings)", "class AddPayment(PaymentsSettings)"),
        ("UNKNOWN_THING = 'unknown-thing'", "UNKNOWN_PAYMENT = 'unknown-payment'"),
        ("from things.v1, thing_id, list_things", "from payments.v1, payment_id, list_payments"),
        ("${HOMETOWN_PORT_THINGS_API}", "${HOMETOWN_PORT_PAYMENTS_API}"),
        ("nothing, something, anything else", "nothing, something, anything else"),
        ("A thing of a thing", "A payment of a payment"),
    ],
)
def test_all_forms_of_the_word_are_renamed_and_other_words_are_not(text: str, renamed: str) -> None:
    assert PAYMENTS.rename(text) == renamed


def test_the_article_fits_the_name() -> None:
    assert INVOICES.rename("A thing has a thing's name") == "An invoice has an invoice's name"
    assert UNITS.rename("A thing of a thing") == "A unit of a unit"


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("payments", "payment"),
        ("deliveries", "delivery"),
        ("boxes", "box"),
        ("addresses", "address"),
        ("invoices", "invoice"),
        ("branches", "branch"),
    ],
)
def test_the_singular_follows_from_the_usual_endings(plural: str, singular: str) -> None:
    assert derive_singular(plural) == singular


@pytest.mark.parametrize(
    ("name", "singular", "complaint"),
    [
        ("Payments", None, "'Payments' cannot be a name"),
        ("pay-ments", None, "'pay-ments' cannot be a name"),
        ("9lives", None, "'9lives' cannot be a name"),
        ("p" * 16 + "s", None, "cannot be a name"),
        ("../users", None, "cannot be a name"),
        ("people", None, "singular=person"),
        ("status", None, "the singular of 'status' is not clear"),
        ("stock", "stock", "'stock' cannot be the singular of 'stock'"),
        ("payments", "Pay", "'Pay' cannot be the singular of 'payments'"),
        ("shared", "share", "'shared' is reserved"),
        ("classes", "class", "'class' is reserved"),
        ("events", None, "'events' has another meaning"),
        ("names", None, "'names' has another meaning"),
        ("users", None, "users-svc exists"),
        ("items", None, "there is a topic items.v1"),
        ("hours", None, "there is a scope hours:read"),
    ],
)
def test_a_name_that_cannot_be_taken_is_one_line(
    name: str, singular: str | None, complaint: str
) -> None:
    with pytest.raises(NewError) as refused:
        plan_service(CHECKOUT, load_declarations(), parse_words(name, singular))

    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_command_ends_with_that_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.new", "--thing=service", "--name=users"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "hometown: users-svc exists: choose another name, or remove the folder\n"
    )


def test_the_ports_are_free_ones_at_the_usual_distance() -> None:
    declared = load_declarations()

    api, relay, worker = choose_ports(declared)

    assert (relay - api, worker - relay) == (10, 10)
    assert not {api, relay, worker} & {process.port for process in declared.processes}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of one as the command needs before its first step."""
    for name in ("docker-compose.yml", "docker-compose.cluster.yml", "uv.lock"):
        (tmp_path / name).write_bytes((CHECKOUT / name).read_bytes())
    for path in CHECKOUT.glob("*/service.toml"):
        (tmp_path / path.parent.name).mkdir()
        (tmp_path / path.parent.name / path.name).write_bytes(path.read_bytes())
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {
        path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))
    }


def make_payments(checkout: Path) -> None:
    add(checkout, plan_service(checkout, load_declarations(checkout), PAYMENTS), lambda line: None)


SPOIL = "open('uv.lock', 'w').close(); open('made', 'w').close(); print('why'); raise SystemExit(1)"


@pytest.mark.parametrize(
    "command", [[sys.executable, "-c", SPOIL], ["/no/such/command"]], ids=["fails", "is missing"]
)
def test_a_step_that_fails_changes_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, command: Sequence[str]
) -> None:
    monkeypatch.setattr(service, "list_steps", lambda words: [("a step", command)])
    before = contents(checkout)

    with pytest.raises(ChangeError, match="a step failed"):
        make_payments(checkout)

    assert contents(checkout) == before


def test_an_interrupted_step_changes_nothing(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(root: Path, title: str, command: Sequence[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(changes, "run_step", interrupted)
    before = contents(checkout)

    with pytest.raises(KeyboardInterrupt):
        make_payments(checkout)

    assert contents(checkout) == before


def test_the_longest_name_fits_into_all_lines(tmp_path: Path) -> None:
    for path, text in read_service().items():
        renamed = tmp_path / LONGEST.rename(path)
        renamed.parent.mkdir(parents=True, exist_ok=True)
        renamed.write_text(LONGEST.rename(text))
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(CHECKOUT / "pyproject.toml"), str(tmp_path)]

    subprocess.run([*ruff, "format", "-q", *config], check=True, timeout=HANGS_AFTER_SECONDS)
    found = subprocess.run(
        [*ruff, "check", "-q", "--select=E,F", "--ignore=F401", "--output-format=concise", *config],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert found.stdout == ""
