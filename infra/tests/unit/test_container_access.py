"""Rights in Kafka, and the certificates behind them."""

import ssl
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from containers import certificates
from containers.access import EVERY, VISITOR, Right, binding, rights
from containers.secrets import BROKER_HOSTS
from shared.messaging.topics import INTERNAL_TOPICS, TOPICS, Topic
from shared.runtime.declarations import load_declarations
from test_support.first_services import is_added


def who_may(operation: str, topic: str) -> set[str]:
    return {
        user
        for user, held in rights().items()
        if any(right.operation == operation and right.name in (topic, EVERY) for right in held)
    }


@pytest.mark.parametrize(
    ("topic", "writer"),
    [("users.v1", "users"), ("items.v1", "orders"), ("orders.v1", "orders")],
)
def test_a_topic_has_one_writer_and_its_tool(topic: str, writer: str) -> None:
    assert who_may("write", topic) == {f"{writer}-relay", f"{writer}-tool"}


@pytest.mark.parametrize("topic", TOPICS.values(), ids=lambda topic: topic.name)
def test_a_topic_is_read_by_its_declared_readers(topic: Topic) -> None:
    tools = {f"{reader.partition('-')[0]}-tool" for reader in topic.readers}

    assert who_may("read", topic.name) == {*topic.readers, *tools, VISITOR}


def test_dead_letters_are_written_by_their_reader() -> None:
    assert who_may("write", "users.v1.orders-worker.dlq") == {"orders-worker", "orders-tool"}


def test_topics_of_a_program_are_its_own() -> None:
    for topic in INTERNAL_TOPICS.values():
        assert who_may("write", topic.name) == {"analytics-faust"}


def test_no_user_writes_to_every_topic() -> None:
    everywhere = {
        (user, right.operation)
        for user, held in rights().items()
        for right in held
        if right.name == EVERY
    }
    assert "write" not in {operation for _, operation in everywhere}


USERS, ITEMS, ORDERS = "users.v1", "items.v1", "orders.v1"
STEPS = (
    "analytics-faust-users-changelog",
    "analytics-faust.lines-by-item",
    "analytics-faust-items-changelog",
    "analytics-faust.purchases-by-hour",
    "analytics-faust-buyers-changelog",
)


def of_reader(name: str, *topics: str, group: str | None = None) -> set[str]:
    rights = {f"{topic} read" for topic in topics}
    return rights | {f"{topic}.{name}.dlq write" for topic in topics} | {f"{group or name} read"}


def test_the_rights_follow_from_the_declarations() -> None:
    reads = {each.name: each.reads for each in load_declarations().processes}
    users_worker = of_reader("users-worker", *reads["users-worker"])
    orders_worker = of_reader("orders-worker", *reads["orders-worker"])
    assert {USERS, ORDERS} <= {*reads["users-worker"]}
    assert {USERS, ITEMS, ORDERS} <= {*reads["orders-worker"]}
    job = of_reader("analytics-job", USERS, ITEMS, ORDERS, group="spark-kafka-*")
    found = {
        user: {f"{each.name}{'*' * each.is_prefix} {each.operation}" for each in held}
        for user, held in rights().items()
        if not is_added(user)
    }

    assert found == {
        "users-relay": {"users.v1 write"},
        "users-worker": users_worker,
        "users-tool": users_worker | {"users.v1 write"},
        "orders-relay": {"items.v1 write", "orders.v1 write"},
        "orders-worker": orders_worker,
        "orders-tool": orders_worker | {"items.v1 write", "orders.v1 write"},
        "analytics-job": job,
        "analytics-tool": job,
        "analytics-api": {f"{topic} describe" for topic in (USERS, ITEMS, ORDERS)},
        "analytics-faust": of_reader("analytics-faust", USERS, ITEMS, ORDERS)
        | {f"{topic} {operation}" for topic in STEPS for operation in ("read", "write")},
        "observer": {"* describe"},
        "topics": {"* create", "* describe"},
        "visitor": {"* read", "* describe_configs", "visitor* read"},
    }


def test_a_right_is_for_one_user_from_anywhere() -> None:
    acl = binding("users-relay", Right("topic", "users.v1", "write"))

    assert (acl.principal, acl.name, acl.host) == ("User:users-relay", "users.v1", EVERY)
    assert acl.operation is AclOperation.WRITE


def test_the_certificate_of_a_broker_has_its_names_alone(tmp_path: Path) -> None:
    file = certificates.issue_certificate(tmp_path, "broker", BROKER_HOSTS)
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    authority = x509.load_pem_x509_certificate(certificates.authority(tmp_path).read_bytes())

    assert set(names.get_values_for_type(x509.DNSName)) == set(BROKER_HOSTS) - {"127.0.0.1"}
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    certificate.verify_directly_issued_by(authority)
    ssl.create_default_context().load_verify_locations(certificates.authority(tmp_path))


def test_an_administrator_cannot_pose_as_a_broker(tmp_path: Path) -> None:
    file = certificates.issue_certificate(tmp_path, "admin")
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert list(uses) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_existing_certificates_are_kept(tmp_path: Path) -> None:
    before = certificates.issue_certificate(tmp_path, "admin").read_text()

    assert certificates.issue_certificate(tmp_path, "admin").read_text() == before
    assert (tmp_path / "admin.pem").stat().st_mode & 0o077 == 0
