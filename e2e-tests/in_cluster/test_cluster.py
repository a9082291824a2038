"""Brokers stop and start under load, unknown clients connect: no request fails, nothing is lost."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from local_stack.run_folder import read_json
from shared.messaging import kafka
from shared.messaging.topics import TOPICS
from shared.messaging.wire import OutgoingRecord, pack
from shared.runtime.brokers import Brokers, Login
from test_support.system.cluster_stack import BROKERS, ClusterStack
from test_support.system.eventually import eventually
from test_support.system.registering import (
    Registration,
    first_deliveries,
    register_until,
    versions_of,
)
from test_support.system.stack import Stack
from test_support.waits import HANGS_AFTER_SECONDS
from users_svc.contract import TOPIC

CLIENTS = 2
BESIDE_SECONDS = 5
AWAY_SECONDS = float(os.environ.get("HOMETOWN_OUTAGE_SECONDS", "10"))
WRITE_SECONDS_MAX = 10

DEAD_LETTERS = "orders.v1.analytics-job.dlq"
GRANTED_BY_HAND = f"""
from containers.access import Right, administrator, binding
from containers.once import BROKERS, FOLDER

admin = administrator(BROKERS, FOLDER / "administrator")
right = binding("users-relay", Right("topic", "{DEAD_LETTERS}", "write"))
for granted in admin.create_acls([right]).values():
    granted.result(30)
"""

PROMISED = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
REPLICAS = 3


@pytest.fixture(scope="module")
def admin(cluster: ClusterStack) -> AdminClient:
    """With the login of the visitor, which has read rights."""
    login = cluster.brokers.login
    assert login is not None
    return AdminClient(
        {
            "bootstrap.servers": cluster.brokers.servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": login.username,
            "sasl.password": login.password,
            "ssl.ca.location": str(login.ca_file),
        }
    )


def test_the_proxy_passes_no_metrics_on(cluster: ClusterStack) -> None:
    orders = cluster.hometown.addresses["orders-api"]

    for path in ("metrics", "%6detrics", "metrics?"):
        assert cluster.hometown.http.get(f"{orders}/{path}").status_code == 404
    assert "hometown_process_clock_seconds" in cluster.read_metrics("orders-api")


def test_every_topic_has_the_documented_durability(admin: AdminClient) -> None:
    topics = admin.list_topics(timeout=HANGS_AFTER_SECONDS).topics
    domain = {name: topics[name] for name in TOPICS}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in domain]
    configs = [
        future.result(HANGS_AFTER_SECONDS) for future in admin.describe_configs(resources).values()
    ]

    assert {
        len(partition.replicas)
        for topic in domain.values()
        for partition in topic.partitions.values()
    } == {REPLICAS}
    assert len(topics["__consumer_offsets"].partitions[0].replicas) == REPLICAS
    for config in configs:
        assert {name: config[name].value for name in PROMISED} == PROMISED


async def write_one(brokers: Brokers, topic: str) -> None:
    write = kafka.create_writer(brokers, "intruder")
    async with asyncio.timeout(WRITE_SECONDS_MAX):
        await write([OutgoingRecord(topic, 0, b"key", b"value", pack([]), 0)])


def test_a_visitor_can_read_and_cannot_write(cluster: ClusterStack) -> None:
    with pytest.raises((TopicAuthorizationFailedError, ClusterAuthorizationFailedError)):
        asyncio.run(write_one(cluster.brokers, TOPIC))


def test_a_service_can_write_its_own_topics_only(cluster: ClusterStack) -> None:
    with pytest.raises(TopicAuthorizationFailedError):
        asyncio.run(write_one(cluster.brokers_of("users-relay"), "orders.v1"))


def may_write(brokers: Brokers, topic: str) -> bool:
    try:
        asyncio.run(write_one(brokers, topic))
    except TopicAuthorizationFailedError:
        return False
    return True


def test_a_right_that_is_not_declared_is_revoked(cluster: ClusterStack) -> None:
    def run_access(*instead: str) -> None:
        # With dependencies, a changed image of `secrets` would replace all brokers at once.
        assert cluster.project.call("run", "--rm", "--no-TTY", "--no-deps", *instead) == 0

    login = cluster.brokers_of("users-relay")
    run_access("--entrypoint=python", "access", "-c", GRANTED_BY_HAND)
    eventually(lambda: may_write(login, DEAD_LETTERS), bool, what="a right that was granted")

    run_access("access")

    eventually(lambda: may_write(login, DEAD_LETTERS), lambda may: not may, what="it is gone")


def strangers(cluster: ClusterStack) -> list[Brokers]:
    """Logins without a password, with a wrong one, with that of another process."""
    login = cluster.brokers.login
    assert login is not None
    passwords = read_json(cluster.folder.secrets)
    wrong = [
        Login(username=login.username, password=password, ca_file=login.ca_file)
        for password in ("guessed", passwords["users-relay"])
    ]
    return [Brokers(cluster.brokers.servers, each) for each in (None, *wrong)]


def test_a_client_without_its_own_password_cannot_connect(cluster: ClusterStack) -> None:
    async def connect(brokers: Brokers) -> None:
        consumer = AIOKafkaConsumer(**brokers.options, request_timeout_ms=3_000)
        try:
            async with asyncio.timeout(WRITE_SECONDS_MAX):
                await consumer.start()
        finally:
            await consumer.stop()

    for stranger in strangers(cluster):
        with pytest.raises((KafkaError, TimeoutError)):
            asyncio.run(connect(stranger))


async def register_during(
    stack: Stack, happening: Callable[[], Awaitable[None]]
) -> Sequence[Registration]:
    """Register users before, during and after `happening`. Fails if a request fails."""
    registrations: list[Registration] = []
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(CLIENTS):
            tasks.create_task(register_until(stack, stopping, registrations))
        await asyncio.sleep(BESIDE_SECONDS)
        await happening()
        await asyncio.sleep(BESIDE_SECONDS)
        stopping.set()
    return registrations


def demand_all_in_order(cluster: ClusterStack, registrations: Sequence[Registration]) -> None:
    users = [each.user_id for each in registrations]
    versions = asyncio.run(versions_of(cluster.brokers, users))

    assert users
    assert first_deliveries(versions) == {user: [1, 2] for user in users}


def leader_of(admin: AdminClient) -> str:
    metadata = admin.list_topics(TOPIC, timeout=HANGS_AFTER_SECONDS)
    return BROKERS[metadata.topics[TOPIC].partitions[0].leader]


def test_the_leader_of_a_partition_is_killed(cluster: ClusterStack, admin: AdminClient) -> None:
    async def kill_leader() -> None:
        await asyncio.to_thread(cluster.kill, leader_of(admin))

    demand_all_in_order(cluster, asyncio.run(register_during(cluster, kill_leader)))


async def stop_for_a_while(cluster: ClusterStack, *names: str) -> None:
    await asyncio.to_thread(cluster.stop, names)
    try:
        await asyncio.sleep(AWAY_SECONDS)
    finally:
        await asyncio.to_thread(cluster.start, names)


def test_a_broker_is_unavailable(cluster: ClusterStack) -> None:
    demand_all_in_order(
        cluster, asyncio.run(register_during(cluster, lambda: stop_for_a_while(cluster, "kafka-2")))
    )


def test_all_brokers_are_replaced_one_by_one(cluster: ClusterStack) -> None:
    async def roll() -> None:
        for name in BROKERS.values():
            await asyncio.to_thread(cluster.stop, [name])
            await asyncio.to_thread(cluster.start, [name])
            await asyncio.sleep(BESIDE_SECONDS)

    demand_all_in_order(cluster, asyncio.run(register_during(cluster, roll)))


def test_a_dead_broker_is_in_the_status_which_fails(cluster: ClusterStack) -> None:
    with cluster.stopped("kafka-3"):
        ended = cluster.make("status")

    assert ended.returncode != 0
    assert re.search(r"^kafka-3 +dead", ended.stdout, re.MULTILINE)


def test_a_replay_leaves_both_relays_running(cluster: ClusterStack) -> None:
    cluster.make_output("replay", "name=users")

    containers = cluster.project.containers()
    assert {containers[name].state for name in ("users-relay", "users-relay-2")} == {"running"}


def test_with_one_broker_left_users_register_and_are_published_later(cluster: ClusterStack) -> None:
    demand_all_in_order(
        cluster,
        asyncio.run(
            register_during(cluster, lambda: stop_for_a_while(cluster, "kafka-2", "kafka-3"))
        ),
    )
