"""Why no broker that misses records becomes a leader: what happens to acknowledged ones if it can.

A topic has two replicas, on the brokers 2 and 3. With three, two would have to be unavailable, and
these brokers are the controllers as well: one of three elects no leader at all.
"""

import asyncio
from collections.abc import Iterator, Mapping

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from shared.runtime.brokers import Brokers
from test_support.system.cluster_stack import ClusterStack
from test_support.system.eventually import eventually

RECORDS = 100
READ_SECONDS_MAX = 60
REQUEST_SECONDS_MAX = 30

AS_ADMINISTRATOR = """
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from containers.access import administrator
from containers.once import BROKERS, FOLDER

certificates = FOLDER / "administrator"
admin = administrator(BROKERS, certificates)
producer = Producer({
    "bootstrap.servers": BROKERS,
    "security.protocol": "SSL",
    "ssl.ca.location": str(certificates / "authority.pem"),
    "ssl.certificate.location": str(certificates / "admin.pem"),
    "ssl.key.location": str(certificates / "admin.pem"),
    "acks": "all",
    "retries": 0,
    "message.timeout.ms": 20000,
})
"""
CREATE = """
config = {"unclean.leader.election.enable": UNCLEAN, "min.insync.replicas": IN_SYNC}
topic = NewTopic(TOPIC, num_partitions=1, replica_assignment=[[2, 3]], config=config)
admin.create_topics([topic])[TOPIC].result(30)
"""
WRITE = """
errors = []
for number in range(RECORDS):
    text = f"{NAME} {number}"
    producer.produce(TOPIC, text, on_delivery=lambda error, _: errors.append(error))
producer.flush(30)
print(sum(error is None for error in errors), *{error.name() for error in errors if error})
"""
DELETE = "admin.delete_topics([TOPIC])[TOPIC].result(30)"


class Topic:
    """One partition that the administrator writes and the visitor reads."""

    def __init__(self, cluster: ClusterStack, name: str) -> None:
        self._cluster = cluster
        self._name = name

    def create(self, *, unclean: str, in_sync: str) -> None:
        self._run(CREATE, UNCLEAN=unclean, IN_SYNC=in_sync)

    def write(self, name: str) -> list[str]:
        """How many records were acknowledged, and the names of errors."""
        return self._run(WRITE, NAME=name, RECORDS=RECORDS).split()

    def read(self) -> Mapping[int, str]:
        """All records by their offsets."""
        return asyncio.run(read_all(self._cluster.brokers, self._name))

    def delete(self) -> None:
        self._run(DELETE)

    def find_in_sync(self) -> tuple[int, list[int]]:
        """The leader, and all brokers that have every record."""
        login = self._cluster.brokers.login
        assert login is not None
        visitor = AdminClient(
            {
                "bootstrap.servers": self._cluster.brokers.servers,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": login.username,
                "sasl.password": login.password,
                "ssl.ca.location": str(login.ca_file),
            }
        )
        metadata = visitor.list_topics(self._name, timeout=REQUEST_SECONDS_MAX)
        partition = metadata.topics[self._name].partitions[0]
        return partition.leader, sorted(partition.isrs)

    def _run(self, script: str, **values: object) -> str:
        """As the administrator, inside of the stack."""
        named = {"TOPIC": self._name, **values}
        assignments = "\n".join(f"{name} = {value!r}" for name, value in named.items())
        whole = f"{AS_ADMINISTRATOR}\n{assignments}\n{script}"
        options = ("--rm", "--no-TTY", "--no-deps", "--entrypoint=python")
        return self._cluster.project.output("run", *options, "access", "-c", whole)


async def read_all(brokers: Brokers, topic: str) -> Mapping[int, str]:
    partition = TopicPartition(topic, 0)
    consumer = AIOKafkaConsumer(**brokers.options, enable_auto_commit=False)
    found: dict[int, str] = {}
    await consumer.start()
    try:
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        end = (await consumer.end_offsets([partition]))[partition]
        async with asyncio.timeout(READ_SECONDS_MAX):
            while await consumer.position(partition) < end:
                for record in (await consumer.getmany(timeout_ms=500)).get(partition, ()):
                    found[record.offset] = record.value.decode()
    finally:
        await consumer.stop()
    return found


@pytest.fixture
def topic(cluster: ClusterStack, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """Its brokers run again afterwards, whatever has happened."""
    created = Topic(cluster, request.node.name)
    try:
        yield created
    finally:
        cluster.start(["kafka-2", "kafka-3"])
        created.delete()


def test_tv23_a_leader_without_all_records_loses_acknowledged_ones(
    cluster: ClusterStack, topic: Topic
) -> None:
    """The negative control."""
    topic.create(unclean="true", in_sync="1")
    assert topic.write("both") == [str(RECORDS)]
    cluster.stop(["kafka-3"])
    eventually(topic.find_in_sync, lambda seen: seen == (2, [2]), what="broker 2 leads alone")
    assert topic.write("first") == [str(RECORDS)]
    before = topic.read()

    cluster.stop(["kafka-2"])
    cluster.start(["kafka-3"])
    eventually(topic.find_in_sync, lambda seen: seen == (3, [3]), what="one without them leads")
    assert topic.write("second") == [str(RECORDS)]
    cluster.start(["kafka-2"])
    after = topic.read()

    disputed = range(RECORDS, 2 * RECORDS)
    assert [before[offset] for offset in disputed] == [f"first {n}" for n in range(RECORDS)]
    assert [after[offset] for offset in disputed] == [f"second {n}" for n in range(RECORDS)]
    assert len(after) == 2 * RECORDS


def test_tv23_with_the_promised_settings_writers_are_refused_and_readers_continue(
    cluster: ClusterStack, topic: Topic
) -> None:
    """`min.insync.replicas` is that of all topics of the cluster, and unclean election is off."""
    topic.create(unclean="false", in_sync="2")
    assert topic.write("both") == [str(RECORDS)]

    with cluster.stopped("kafka-3"):
        eventually(topic.find_in_sync, lambda seen: seen == (2, [2]), what="broker 2 leads alone")
        acknowledged, *errors = topic.write("refused")
        during = topic.read()

    assert (acknowledged, errors) == ("0", ["NOT_ENOUGH_REPLICAS"])
    assert during == {number: f"both {number}" for number in range(RECORDS)}
    eventually(topic.find_in_sync, lambda seen: seen[1] == [2, 3], what="both have all records")
    assert topic.write("again") == [str(RECORDS)]
