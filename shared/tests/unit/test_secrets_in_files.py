"""No file that is kept holds a secret; those of a checkout are made in its run folder."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
FILE_BYTES_MAX = 1 << 20

SECRETS: Mapping[str, re.Pattern[str]] = {
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "token": re.compile(r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
    "key of a cloud": re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}\b"),
    "token of a host": re.compile(
        r"\bgh[pousr]_\w{36}\b|\bxox[baprs]-[\w-]{10,}|\bglpat-[\w-]{20}"
    ),
    "password": re.compile(
        r"""(?i)\b\w*(password|passwd|secret|api_?key)["']?\s*[:=]\s*["'][^"'\s{}<>]{6,}["']"""
    ),
    "password in an address": re.compile(r"\w+://[^\s:/@\"'{]+:(?!password@)[^\s:/@\"'{%]{4,}@"),
}

EXAMPLES = {
    "private key": "-----BEGIN EC PRIVATE" + " KEY-----",
    "token": "eyJhbGciOiJFZERTQSJ9" + ".eyJzdWIiOiJjbGVyayJ9" + ".c2lnbmF0dXJl",
    "key of a cloud": "AKIA" + "IOSFODNN7EXAMPLE",
    "token of a host": "ghp_" + "a1" * 18,
    "password": "db_password = " + '"correct-horse"',
    "password in an address": "postgresql://users:" + "correct-horse@db/users",
}
"""In pieces, or they would be found here."""


def secrets_in(text: str) -> Iterator[str]:
    """What looks like a secret, by its kind, with its line."""
    for number, line in enumerate(text.splitlines(), start=1):
        for kind, pattern in SECRETS.items():
            if pattern.search(line):
                yield f"{number}: {kind}"


def kept_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    return [CHECKOUT / name for name in listed.stdout.split("\0") if name]


def test_trap_t21_no_kept_file_holds_a_secret() -> None:
    found = [
        f"{file.relative_to(CHECKOUT)}:{secret}"
        for file in kept_files()
        if file.is_file() and file.stat().st_size <= FILE_BYTES_MAX
        for secret in secrets_in(file.read_text(errors="replace"))
    ]

    assert found == []


@pytest.mark.parametrize("kind", SECRETS)
def test_trap_t21_a_secret_would_be_found(kind: str) -> None:
    """The same check where there is one."""
    assert list(secrets_in(f"x\n{EXAMPLES[kind]}\n")) == [f"2: {kind}"]


def test_trap_t21_what_holds_the_secrets_of_a_checkout_is_not_kept() -> None:
    for name in (".run/issuer-key.pem", ".run/secrets.json", ".env"):
        ignored = subprocess.run(["git", "check-ignore", "-q", name], cwd=CHECKOUT, check=False)
        assert ignored.returncode == 0, name
