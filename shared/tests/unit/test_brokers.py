"""Every client gets the same address of the brokers and the same login."""

import ssl
from dataclasses import replace
from pathlib import Path

import certifi
import pytest
from faust.types.auth import AuthProtocol

from shared.inbox.worker import faust_options
from shared.runtime.brokers import Brokers, Login, read_client_options
from shared.runtime.settings import KafkaSettings

CA_FILE = Path(certifi.where())
LOGIN = Login(username="users-relay", password='a"b\\c', ca_file=CA_FILE)
SERVERS = "kafka-1:9092,kafka-2:9092"


def test_without_a_login_the_connection_is_plain() -> None:
    brokers = KafkaSettings(kafka_bootstrap_servers=SERVERS).brokers

    assert brokers == Brokers(SERVERS)
    assert brokers.options == {"bootstrap_servers": SERVERS}
    assert read_client_options(brokers.to_text()) == brokers.options
    assert faust_options(brokers) == {"broker": "kafka://kafka-1:9092;kafka-2:9092"}


def test_with_a_login_brokers_must_show_a_certificate_of_their_name() -> None:
    context = Brokers(SERVERS, LOGIN).options["ssl_context"]

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_all_clients_show_the_same_login() -> None:
    brokers = Brokers(SERVERS, LOGIN)
    credentials = faust_options(brokers)["broker_credentials"]

    assert brokers.options["security_protocol"] == "SASL_SSL"
    assert brokers.options["sasl_plain_password"] == LOGIN.password
    assert credentials.protocol is AuthProtocol.SASL_SSL
    assert credentials.mechanism.value == brokers.options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert credentials.ssl_context is brokers.options["ssl_context"]


def test_a_process_without_our_files_has_the_same_login_and_certificates(tmp_path: Path) -> None:
    certificates = tmp_path / "ca.pem"
    certificates.write_bytes(CA_FILE.read_bytes())
    brokers = Brokers(SERVERS, replace(LOGIN, ca_file=certificates))
    text = brokers.to_text()
    certificates.unlink()

    ours, theirs = Brokers(SERVERS, LOGIN).options, read_client_options(text)
    context, other = ours.pop("ssl_context"), theirs.pop("ssl_context")
    assert theirs == ours
    assert other.verify_mode is ssl.CERT_REQUIRED
    assert other.check_hostname
    assert other.get_ca_certs() == context.get_ca_certs()


def test_settings_make_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_USERNAME", LOGIN.username)
    monkeypatch.setenv("KAFKA_PASSWORD", LOGIN.password)
    monkeypatch.setenv("KAFKA_CA_FILE", str(CA_FILE))
    settings = KafkaSettings(kafka_bootstrap_servers=SERVERS)

    assert settings.brokers == Brokers(SERVERS, LOGIN)
    assert LOGIN.password not in repr(settings)
