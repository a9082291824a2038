"""Certificates are renewed before they end, by the same authority."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from containers import certificates, once, secrets
from containers.certificates import RENEWED_DAYS_BEFORE, VALID_DAYS


def load(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def later(days: int) -> type[datetime]:
    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=days)

    return Later


def certificates_of(root: Path) -> dict[str, str]:
    return {
        f"{file.parent.name}/{file.name}": file.read_text()
        for file in root.glob("*/*.pem")
        if "CERTIFICATE" in file.read_text() and file.parent.name != "keys"
    }


@pytest.mark.parametrize(
    ("days", "is_renewed"),
    [(VALID_DAYS - RENEWED_DAYS_BEFORE - 1, False), (VALID_DAYS - RENEWED_DAYS_BEFORE + 1, True)],
)
def test_a_certificate_is_renewed_in_the_last_third_of_its_time(
    days: int, is_renewed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificates.issue_certificate(tmp_path, "users-api", ["users-api"])
    before = load(file)
    monkeypatch.setattr(certificates, "datetime", later(days))

    after = load(certificates.issue_certificate(tmp_path, "users-api", ["users-api"]))

    assert (after != before) is is_renewed
    after.verify_directly_issued_by(load(certificates.authority(tmp_path)))


def test_no_certificate_is_valid_longer_than_its_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = load(certificates.authority(tmp_path))
    monkeypatch.setattr(certificates, "datetime", later(certificates.AUTHORITY_VALID_DAYS - 1))

    last = load(certificates.issue_certificate(tmp_path, "users-api", ["users-api"]))

    assert last.not_valid_after_utc == authority.not_valid_after_utc


def test_a_rotation_renews_every_certificate_but_the_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMETOWN_TLS", "on")
    monkeypatch.setattr(once, "FOLDER", tmp_path)
    secrets.write(tmp_path, tls=True)
    before, passwords = certificates_of(tmp_path), secrets.passwords_of(tmp_path)
    monkeypatch.setattr("sys.argv", ["once", "rotate", "certificates"])

    assert once.main() == 0

    after = certificates_of(tmp_path)
    kept = {name for name in before if name.endswith("authority.pem")}
    assert after.keys() == before.keys()
    assert {name for name in before if after[name] == before[name]} == kept
    assert secrets.passwords_of(tmp_path) == passwords


def test_a_rotation_of_the_issuer_reaches_the_apis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "FOLDER", tmp_path)
    secrets.write(tmp_path)
    before = (tmp_path / "users-api" / "jwks.json").read_text()
    monkeypatch.setattr("sys.argv", ["once", "rotate", "issuer"])

    assert once.main() == 0

    after = (tmp_path / "users-api" / "jwks.json").read_text()
    assert after != before
    assert after == (tmp_path / "keys" / "issuer-jwks.json").read_text()
