"""Topics of lessons keep records of 2016, which a broker would remove within minutes."""

from confluent_kafka.admin import AdminClient, ConfigResource

from lessons.broker import PREFIX, open_topics
from lessons.lesson import Record
from test_support.waits import HANGS_AFTER_SECONDS

TOPIC = f"{PREFIX}kept"


async def test_a_topic_keeps_records_of_any_time(kafka_servers: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
    admin = AdminClient({"bootstrap.servers": kafka_servers})
    async with open_topics(kafka_servers) as topics, topics.remove_around(TOPIC):
        await topics.create([TOPIC])
        # The broker that is asked knows the topic then.
        await topics.publish(PREFIX, [Record(topic="kept", value="a record")])

        config = admin.describe_configs([resource])[resource].result(HANGS_AFTER_SECONDS)

    assert config["retention.ms"].value == "-1"
