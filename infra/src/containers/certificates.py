"""Certificates of a stack: one authority of its own, and what it vouches for."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local_stack.run_folder import write_atomically

AUTHORITY_VALID_DAYS = 3_650
"""As long as a volume can exist: its passwords do not expire either."""
VALID_DAYS = 825
RENEWED_DAYS_BEFORE = 275
"""A certificate is renewed in the last third of its time."""
SKEW = timedelta(hours=1)
"""A container's clock can be behind that of the signer."""

AUTHORITY = "authority"


def authority(folder: Path) -> Path:
    """The authority's certificate in PEM; made with its key once, and kept."""
    certificate, key_file = folder / "authority.pem", folder / "authority-key.pem"
    if not certificate.exists():
        now = datetime.now(UTC)
        key = generate_private_key(SECP256R1())
        name = to_name(AUTHORITY)
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        signed = (
            build_certificate(name, name, key, now, now + timedelta(days=AUTHORITY_VALID_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        write_atomically(key_file, to_pem(key), mode=0o600)
        write_atomically(certificate, signed.public_bytes(Encoding.PEM).decode())
    return certificate


def issue_certificate(
    folder: Path,
    subject: str,
    hosts: Sequence[str] = (),
    *,
    connects: bool = True,
    renewed: bool = False,
) -> Path:
    """A private key and its certificate in one PEM file; kept until RENEWED_DAYS_BEFORE its end,
    unless it is to be `renewed` now.

    It is good for connecting if it `connects`, and for being connected to under the names or
    addresses `hosts`.
    """
    file, now = folder / f"{subject}.pem", datetime.now(UTC)
    if renewed or not is_valid(file, now + timedelta(days=RENEWED_DAYS_BEFORE)):
        issuer = x509.load_pem_x509_certificate(authority(folder).read_bytes())
        issuer_key = load_pem_private_key((folder / "authority-key.pem").read_bytes(), None)
        assert isinstance(issuer_key, EllipticCurvePrivateKey)
        key = generate_private_key(SECP256R1())
        uses = [
            *([ExtendedKeyUsageOID.CLIENT_AUTH] * connects),
            *([ExtendedKeyUsageOID.SERVER_AUTH] * bool(hosts)),
        ]
        end = min(now + timedelta(days=VALID_DAYS), issuer.not_valid_after_utc)
        builder = build_certificate(to_name(subject), issuer.subject, key, now, end).add_extension(
            x509.ExtendedKeyUsage(uses), critical=False
        )
        if hosts:
            names = x509.SubjectAlternativeName([to_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(issuer_key, hashes.SHA256())
        text = to_pem(key) + certificate.public_bytes(Encoding.PEM).decode()
        write_atomically(file, text, mode=0o600)
    return file


def is_valid(file: Path, at: datetime) -> bool:
    """Whether the file has a certificate that is valid then."""
    if not file.exists():
        return False
    return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc > at


def build_certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    now: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(end)
    )


def to_name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def to_general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def to_pem(key: EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
