"""The issuer of a checkout: one key, kept to itself; tokens on standard output and nothing else."""

import json
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import jwt
import pytest

from fetching.errors import Failure
from local_stack import issuer
from local_stack.__main__ import main
from local_stack.run_folder import RunFolder
from local_stack.stack_spec import StackSpec
from shared.runtime.settings import DEVELOPMENT_ISSUER
from test_support.first_services import leave_out_added

NOTHING = StackSpec(processes=())


@pytest.fixture
def established(folder: RunFolder) -> RunFolder:
    issuer.establish(folder)
    return folder


def claims_of(token: str) -> dict[str, object]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def run(monkeypatch: pytest.MonkeyPatch, folder: RunFolder, *arguments: str) -> int:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(folder.path))
    monkeypatch.setattr(sys, "argv", ["local_stack", "token", *arguments])
    return main(NOTHING)


def test_the_key_is_made_once_and_only_its_owner_can_read_it(established: RunFolder) -> None:
    key = issuer.private_key(established)
    before = key.read_bytes()
    issuer.public_keys(established).unlink()

    issuer.establish(established)

    assert key.read_bytes() == before
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    signs, follows = json.loads(issuer.public_keys(established).read_text())["keys"]
    assert "d" not in signs
    assert "d" not in follows


def key_ids(folder: RunFolder) -> list[str]:
    return [jwk["kid"] for jwk in json.loads(issuer.public_keys(folder).read_text())["keys"]]


def test_a_rotation_signs_with_the_key_that_was_published_before(established: RunFolder) -> None:
    signs, follows = key_ids(established)

    issuer.rotate(established)

    assert jwt.get_unverified_header(issuer.token(established, "clerk"))["kid"] == follows
    assert key_ids(established)[::2] == [follows, signs]
    assert stat.S_IMODE(issuer.private_key(established).stat().st_mode) == 0o600


def test_a_former_key_is_withdrawn_when_its_tokens_have_expired(established: RunFolder) -> None:
    [former, _] = key_ids(established)
    now = datetime.now(UTC)

    issuer.rotate(established, hours=12)

    published = [
        [jwk["kid"] for jwk in issuer.find_retired(established, now + timedelta(hours=hours))]
        for hours in (11, 13)
    ]
    assert published == [[former], []]


def test_two_rotations_keep_both_former_keys(established: RunFolder) -> None:
    first, second = key_ids(established)

    issuer.rotate(established)
    issuer.rotate(established)

    assert set(key_ids(established)[2:]) == {first, second}


def test_an_interrupted_rotation_can_be_repeated(
    established: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="no space left"):
            issuer.rotate(established)
    token = issuer.token(established, "clerk")
    assert jwt.get_unverified_header(token)["kid"] in key_ids(established)

    issuer.rotate(established)

    assert jwt.get_unverified_header(token)["kid"] in key_ids(established)
    assert len(set(key_ids(established))) == len(key_ids(established)) == 3


def test_processes_have_no_certificates(
    established: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(established.path))
    monkeypatch.setattr(sys, "argv", ["local_stack", "rotate", "certificates"])

    assert main(NOTHING) == 1
    assert "processes have no certificates: add in=containers" in capsys.readouterr().err


def test_two_checkouts_have_two_keys(established: RunFolder, issuing: RunFolder) -> None:
    keys = [issuer.public_keys(folder).read_text() for folder in (established, issuing)]

    assert len(set(keys)) == 2


@pytest.mark.parametrize("role", ["clerk", "analyst"])
def test_a_token_has_the_scopes_of_its_role(established: RunFolder, role: str) -> None:
    claims = claims_of(issuer.token(established, role))

    assert (claims["sub"], claims["iss"]) == (role, DEVELOPMENT_ISSUER)
    assert claims["scope"] == " ".join(issuer.ROLES[role])


def test_the_token_of_the_canary_allows_what_it_does_and_is_the_same_all_day(
    established: RunFolder,
) -> None:
    token = issuer.canary_token(established)
    claims = claims_of(token)

    assert issuer.canary_token(established) == token
    assert str(claims["scope"]).split() == [*issuer.CANARY_SCOPES, "all"]
    assert {*issuer.CANARY_SCOPES} < {*issuer.ROLES["clerk"], *issuer.ROLES["analyst"]}
    assert claims["exp"] - claims["iat"] == issuer.CANARY_VALID.total_seconds()  # type: ignore[operator]


def test_the_roles_have_the_scopes_that_services_declare_for_them() -> None:
    reading = {"users:read", "items:read", "orders:read"}

    assert {role: leave_out_added(scopes) for role, scopes in issuer.ROLES.items()} == {
        "user": reading | {"users:write", "orders:write"},
        "clerk": reading | {"users:write", "items:write", "orders:write", "all"},
        "analyst": reading | {"hours:read", "all"},
    }


def test_nothing_but_the_token_is_on_standard_output(
    established: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, established, "user") == 0

    printed = capsys.readouterr()
    [token] = printed.out.splitlines()
    subject = str(claims_of(token)["sub"])
    assert UUID(subject).version == 7
    assert printed.err == f"hometown: a user that is not registered yet: {subject}\n"


def test_a_user_with_an_id_is_that_user(
    established: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, established, "user", "--subject", "me", "--hours", "1") == 0

    printed = capsys.readouterr()
    assert claims_of(printed.out.strip())["sub"] == "me"
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "a role is missing: as=user, as=clerk, as=analyst"),
        (["king"], "there is no role king: as=user, as=clerk, as=analyst"),
        (["clerk", "--hours", "0"], "a token is valid for more than 0 and at most 8760 hours"),
        (["clerk", "--hours", "nan"], "a token is valid for more than 0 and at most 8760 hours"),
    ],
)
def test_what_cannot_be_issued_is_one_line(
    established: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    assert run(monkeypatch, established, *arguments) == 1

    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"hometown: {words}\n")


def test_before_the_first_start_no_token_is_issued(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, folder, "clerk") == 1
    assert capsys.readouterr().err == "hometown: no issuer exists here yet: `make up`, then again\n"


def test_a_broken_key_is_one_line(established: RunFolder) -> None:
    issuer.private_key(established).write_text("broken")

    with pytest.raises(Failure, match="is not a key of this issuer: remove it"):
        issuer.token(established, "clerk")
