"""Every client gets the same address of the brokers and the same login."""

import ssl
from pathlib import Path

import certifi
import pytest

from shared.runtime.brokers import Brokers, Login
from shared.runtime.settings import KafkaSettings

CA_FILE = Path(certifi.where())
LOGIN = Login(username="users-relay", password='a"b\\c', ca_file=CA_FILE)
SERVERS = "kafka-1:9092,kafka-2:9092"


def test_without_a_login_the_connection_is_plain() -> None:
    brokers = KafkaSettings(kafka_bootstrap_servers=SERVERS).brokers

    assert brokers == Brokers(SERVERS)
    assert brokers.options == {"bootstrap_servers": SERVERS}
    assert brokers.java_options == {"bootstrap.servers": SERVERS}


def test_with_a_login_brokers_must_show_a_certificate_of_their_name() -> None:
    context = Brokers(SERVERS, LOGIN).options["ssl_context"]

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_all_clients_show_the_same_login() -> None:
    brokers = Brokers(SERVERS, LOGIN)

    assert brokers.options["security_protocol"] == "SASL_SSL"
    assert brokers.options["sasl_plain_password"] == LOGIN.password
    assert brokers.options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert brokers.java_options["ssl.truststore.certificates"] == CA_FILE.read_text()
    assert 'password="a\\"b\\\\c"' in brokers.java_options["sasl.jaas.config"]


def test_settings_make_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_USERNAME", LOGIN.username)
    monkeypatch.setenv("KAFKA_PASSWORD", LOGIN.password)
    monkeypatch.setenv("KAFKA_CA_FILE", str(CA_FILE))
    settings = KafkaSettings(kafka_bootstrap_servers=SERVERS)

    assert settings.brokers == Brokers(SERVERS, LOGIN)
    assert LOGIN.password not in repr(settings)
