"""Each way, each number of acknowledgements, each failure: what is lost, twice, or overtaken?"""

import asyncio
import itertools
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from lessons.broker import open_topics
from lessons.experiment import Finding, Lab
from lessons.sending.network import RECORD_BYTES_MAX, Broker, Loss, open_broker
from lessons.sending.partitioners import HASHES, choose_partition, separate
from lessons.sending.ways import BY_HAND, CALL_BACK, FIRE, WAIT, WAYS, Sender

NUMBERS = 200
LARGE = 100
"""The number whose record is larger than the broker takes."""
BATCH_BYTES_MAX = 256
"""Ten numbers or so, to have many requests."""
TIMEOUT_MILLISECONDS = 60_000
SHORT_TIMEOUT_MILLISECONDS = 1_000
"""Less than a broker needs to start: senders that do not retry for longer must give up."""
RETRY_MILLISECONDS = 20
RETRY_KILLED_MILLISECONDS = 200
"""Twelve producers that try more often would slow the start of their broker."""
READ_MILLISECONDS_MAX = 200
EXPERIMENT_SECONDS_MAX = 300
PARTITIONS = 4
HOT = "Banana"

Acks = Literal["0", "1", "all", "all, once"]
"""`once` is with idempotence: the broker knows the number of each batch of a producer."""
ACKS: Sequence[Acks] = ("0", "1", "all", "all, once")

Event = Literal["nothing", "broker killed", "answers lost", "requests lost", "silence", "too large"]
EVENTS: Sequence[Event] = (
    "nothing",
    "broker killed",
    "answers lost",
    "requests lost",
    "too large",
)
LOSSES: Mapping[Event, Loss] = {
    "answers lost": Loss.ANSWER,
    "requests lost": Loss.REQUEST,
    "silence": Loss.REQUEST_IN_SILENCE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of the numbers of a trial."""

    believed: int
    stored: int
    lost: int
    """Believed to be stored, and not."""
    twice: int
    overtaken: int
    """First stored after a larger one."""


Holds = Callable[[Counts], bool]
CLAIMS: Mapping[str, Holds] = {
    "each once, in order": lambda counts: (
        counts.believed == counts.stored == NUMBERS
        and (counts.lost, counts.twice, counts.overtaken) == (0, 0, 0)
    ),
    "nothing lost": lambda counts: counts.lost == 0,
    "nothing lost, nothing twice": lambda counts: (counts.lost, counts.twice) == (0, 0),
    "nothing lost, some twice": lambda counts: counts.lost == 0 and counts.twice > 0,
    "nothing lost, some overtaken": lambda counts: counts.lost == 0 and counts.overtaken > 0,
    "nothing overtaken": lambda counts: counts.overtaken == 0,
    "nothing twice or overtaken": lambda counts: (counts.twice, counts.overtaken) == (0, 0),
    "loses in silence": lambda counts: counts.lost > 0,
    "not all stored": lambda counts: counts.stored < NUMBERS,
    "nothing lost, the rest refused": lambda counts: counts.lost == 0 and counts.stored < LARGE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    way: str
    acks: Acks
    event: Event
    claim: str

    @property
    def topic(self) -> str:
        words = f"{self.event} {self.way} {self.acks}".replace(",", "")
        return words.replace(" ", "-")

    @property
    def timeout(self) -> int:
        """Milliseconds. With idempotence a batch is tried until it is stored, but the client waits
        no longer than this for a place in its buffer."""
        must_wait = self.event == "broker killed" and self.acks == "all, once"
        is_short = self.event in ("broker killed", "silence") and not must_wait
        return SHORT_TIMEOUT_MILLISECONDS if is_short else TIMEOUT_MILLISECONDS


WARM_UP = Trial(way=BY_HAND, acks="1", event="nothing", claim="each once, in order")
"""Comes first and is not counted: a broker is slow at first."""


def plan() -> Iterator[Trial]:
    """Claims are made of what is certain, whatever the speed of the machine."""
    for event, way, acks in itertools.product(EVENTS, (FIRE, WAIT, CALL_BACK), ACKS):
        claim = choose_claim(way, acks, event)
        if claim is not None:
            yield Trial(way=way, acks=acks, event=event, claim=claim)
    yield Trial(way=BY_HAND, acks="all", event="silence", claim="nothing lost, some overtaken")
    yield Trial(way=WAIT, acks="all, once", event="silence", claim="each once, in order")


def choose_claim(way: str, acks: Acks, event: Event) -> str | None:
    """None where there is nothing to see, such as answers where none are asked for."""
    once, none = acks == "all, once", acks == "0"
    match event:
        case "nothing":
            return "nothing twice or overtaken" if none else "each once, in order"
        case "answers lost":
            return None if none else "each once, in order" if once else "nothing lost, some twice"
        case "requests lost":
            claims = {"0": "loses in silence", "all": "each once, in order"}
            return claims.get(acks)
        case "broker killed":
            if once:
                return "each once, in order"
            if way == FIRE:
                return "loses in silence"
            return "not all stored" if none else "nothing lost"
        case _:
            if none or way == FIRE:
                return "loses in silence"
            return "nothing lost, the rest refused" if once else "nothing lost, nothing twice"


CONTROLS = (
    Trial(way=FIRE, acks="0", event="requests lost", claim="nothing lost"),
    Trial(way=WAIT, acks="0", event="requests lost", claim="nothing lost"),
    Trial(way=WAIT, acks="all", event="answers lost", claim="nothing lost, nothing twice"),
    Trial(way=FIRE, acks="all", event="too large", claim="nothing lost"),
    Trial(way=BY_HAND, acks="all", event="silence", claim="nothing overtaken"),
)


def run(lab: Lab) -> Sequence[Finding]:
    """All trials on a broker that may be killed, what is twice, and where keys go."""
    with open_broker() as broker:
        return asyncio.run(try_all(broker))


def run_controls(lab: Lab) -> Sequence[Finding]:
    """Claims that are too good: the mechanism that they need is left out."""
    with open_broker() as broker:
        return asyncio.run(try_controls(broker))


async def try_all(broker: Broker) -> list[Finding]:
    async with asyncio.timeout(EXPERIMENT_SECONDS_MAX), broker.connected():
        found = await run_trials(broker, list(plan()))
        for kind, claimed in BALANCES.items():
            found.append(await try_balance(broker, kind, claimed))
        found.append(await try_hot_key(broker))
    return [*found, *hash_keys(), check_partitioner(1)]


async def try_controls(broker: Broker) -> list[Finding]:
    async with asyncio.timeout(EXPERIMENT_SECONDS_MAX), broker.connected():
        found = await run_trials(broker, CONTROLS)
        found.append(await try_balance(broker, "add 10", BALANCE + 10))
    return [*found, compare_hashes(), check_partitioner(0)]


async def run_trials(broker: Broker, trials: Sequence[Trial]) -> list[Finding]:
    """One after another; those that lose their broker together, as it is killed once."""
    await create_topics(broker, {trial.topic: 1 for trial in (WARM_UP, *trials)})
    await send(broker, WARM_UP)
    senders: dict[Trial, tuple[Sender, float]] = {}
    for trial in trials:
        if trial.event != "broker killed":
            broker.network.begin(LOSSES.get(trial.event, Loss.NONE))
            senders[trial] = await send(broker, trial)
    broker.network.begin(Loss.NONE)
    killed = [trial for trial in trials if trial.event == "broker killed"]
    if killed:
        senders.update(zip(killed, await send_and_kill(broker, killed), strict=True))
    stored = await read_all(broker, [TopicPartition(trial.topic, 0) for trial in trials])
    return [judge(trial, *senders[trial], stored[trial.topic]) for trial in trials]


async def create_topics(broker: Broker, names: Mapping[str, int]) -> None:
    """Returns when each partition has its leader: what came earlier with acks=0 would be lost."""
    places = [
        TopicPartition(name, place) for name, count in names.items() for place in range(count)
    ]
    async with open_topics(broker.servers) as topics:
        await topics.create(names)
        await topics.get_ends(places)


def create_producer(
    broker: Broker, acks: Acks, timeout: int, retry: int = RETRY_MILLISECONDS, **more: Any
) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=broker.servers,
        acks={"0": 0, "1": 1}.get(acks, "all"),
        enable_idempotence=acks == "all, once",
        request_timeout_ms=timeout,
        retry_backoff_ms=retry,
        max_batch_size=BATCH_BYTES_MAX,
        **more,
    )


async def start_sender(broker: Broker, trial: Trial) -> Sender:
    retry = RETRY_KILLED_MILLISECONDS if trial.event == "broker killed" else RETRY_MILLISECONDS
    producer = create_producer(broker, trial.acks, trial.timeout, retry)
    await producer.start()
    large = LARGE if trial.event == "too large" else None

    def to_value(number: int) -> bytes:
        padding = "-" * RECORD_BYTES_MAX if number == large else ""
        return json.dumps([number, padding]).encode()

    return Sender(producer=producer, topic=trial.topic, to_value=to_value)


async def send(broker: Broker, trial: Trial) -> tuple[Sender, float]:
    """The sender, and the seconds until all is acknowledged or given up."""
    sender = await start_sender(broker, trial)
    began_at = time.monotonic()
    await WAYS[trial.way](sender, range(1, NUMBERS + 1))
    await sender.producer.stop()
    return sender, time.monotonic() - began_at


async def send_and_kill(broker: Broker, trials: Sequence[Trial]) -> list[tuple[Sender, float]]:
    """All at a time. The broker is killed when each has sent half of its numbers."""
    senders = [await start_sender(broker, trial) for trial in trials]
    began_at = time.monotonic()
    half = NUMBERS // 2
    await asyncio.gather(
        *(
            WAYS[trial.way](sender, range(1, half + 1))
            for trial, sender in zip(trials, senders, strict=True)
        )
    )
    await broker.kill()

    async def finish(trial: Trial, sender: Sender) -> tuple[Sender, float]:
        await WAYS[trial.way](sender, range(half + 1, NUMBERS + 1))
        await sender.producer.stop()
        return sender, time.monotonic() - began_at

    finished = await asyncio.gather(*map(finish, trials, senders))
    await broker.wait_until_back()
    return finished


async def read_all(
    broker: Broker, places: Collection[TopicPartition]
) -> Mapping[str, Sequence[Any]]:
    """The values of each topic, in the order of its only partition."""
    found: dict[str, list[Any]] = defaultdict(list)
    async with AIOKafkaConsumer(
        bootstrap_servers=broker.servers, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        for place, end in (await consumer.end_offsets(places)).items():
            while await consumer.position(place) < end:
                for at, batch in (await consumer.getmany(timeout_ms=READ_MILLISECONDS_MAX)).items():
                    found[at.topic] += [json.loads(record.value) for record in batch]
    return found


def judge(trial: Trial, sender: Sender, seconds: float, stored: Sequence[Any]) -> Finding:
    numbers = [number for number, _ in stored]
    times = Counter(numbers)
    counts = Counts(
        believed=len(sender.believed),
        stored=len(times),
        lost=len(sender.believed - times.keys()),
        twice=sum(count > 1 for count in times.values()),
        overtaken=count_overtaken(numbers),
    )
    row = {
        "happens": trial.event,
        "way": trial.way,
        "acks": trial.acks,
        "believed": counts.believed,
        "stored": counts.stored,
        "lost": counts.lost,
        "twice": counts.twice,
        "overtaken": counts.overtaken,
        "per second": round(counts.believed / seconds),
    }
    return Finding(row=row, claim=trial.claim, holds=CLAIMS[trial.claim](counts))


def count_overtaken(numbers: Sequence[int]) -> int:
    """Those that come first after a larger one."""
    first = list(dict.fromkeys(numbers))
    largest = itertools.accumulate(first, max)
    return sum(number < most for number, most in zip(first, largest, strict=True))


BALANCE = 100
BALANCES = {"balance is 110": 110, "add 10": 120, "add 10, with an id": 110}
"""TV-25: the balance of 100 after a record that was stored twice."""


async def try_balance(broker: Broker, kind: str, claimed: int) -> Finding:
    """One record, whose acknowledgement is lost, so that the client sends it again."""
    topic = "balance-" + "".join(filter(str.isalnum, kind))
    await create_topics(broker, {topic: 1})
    producer = create_producer(broker, "all", TIMEOUT_MILLISECONDS)
    await producer.start()
    broker.network.begin(Loss.FIRST_ANSWER)
    await producer.send_and_wait(topic, json.dumps(kind).encode())
    await producer.stop()
    broker.network.begin(Loss.NONE)
    stored = (await read_all(broker, [TopicPartition(topic, 0)]))[topic]
    balance = consume(stored)
    row = {
        "happens": "answer lost",
        "way": kind,
        "acks": "all",
        "believed": 1,
        "stored": len(set(stored)),
        "twice": len(stored) - len(set(stored)),
        "result": balance,
    }
    holds = balance == claimed and len(stored) > 1
    return Finding(row=row, claim=f"{BALANCE} becomes {claimed}", holds=holds)


def consume(records: Sequence[str]) -> int:
    """The balance after the records; one with an id counts once."""
    balance, seen = BALANCE, set[str]()
    for record in records:
        if record == "balance is 110":
            balance = 110
        elif record not in seen:
            balance += 10
        if record == "add 10, with an id":
            seen.add(record)
    return balance


async def try_hot_key(broker: Broker) -> Finding:
    """Half of all records have one key: it has the last partition to itself."""
    topic = "hot-key"
    await create_topics(broker, {topic: PARTITIONS})
    producer = create_producer(broker, "all, once", TIMEOUT_MILLISECONDS, partitioner=separate(HOT))
    await producer.start()
    keys = [HOT if number % 2 else f"fruit {number % 20}" for number in range(NUMBERS)]
    sent = [await producer.send(topic, b"", key=key.encode()) for key in keys]
    places = [place.partition for place in await asyncio.gather(*sent)]
    await producer.stop()
    found: dict[int, set[str]] = defaultdict(set)
    for key, partition in zip(keys, places, strict=True):
        found[partition].add(key)
    records = Counter(places)
    row = {
        "happens": "a hot key",
        "way": "a partition of its own",
        "acks": "all, once",
        "believed": NUMBERS,
        "stored": sum(records.values()),
        "result": " ".join(str(records[number]) for number in range(PARTITIONS)),
    }
    apart = found[PARTITIONS - 1] == {HOT} and sum(map(len, found.values())) == len(set(keys))
    return Finding(row=row, claim="alone, and each key in one partition", holds=apart)


USERS = ("Jack", "Lily", "Mike", "Lucy")
ITEMS = ("iphone", "ipad", "iwatch", "ipod")
PLACES: Mapping[str, tuple[str, str]] = {
    "String.hashCode": ("2 2 0 2", "5 0 2 2"),
    "murmur2": ("0 2 2 0", "3 1 1 5"),
    "CRC-32": ("2 2 2 0", "5 4 4 0"),
}
"""TV-6, by hash: the partitions of the users, of three, and of the items, of six."""


def hash_keys() -> list[Finding]:
    """Each hash has its own places, so the writers of a topic must have one."""
    found = []
    for name, claimed in PLACES.items():
        places = find_places(name)
        row = {"happens": "keys", "way": name, "result": " / ".join(places)}
        claim = f"is {' / '.join(claimed)}"
        found.append(Finding(row=row, claim=claim, holds=places == claimed))
    return found


def find_places(name: str) -> tuple[str, str]:
    def place(keys: Sequence[str], partitions: int) -> str:
        return " ".join(str(HASHES[name](key) % partitions) for key in keys)

    return place(USERS, 3), place(ITEMS, 6)


def compare_hashes() -> Finding:
    same = len({find_places(name) for name in HASHES}) == 1
    return Finding(row={"happens": "keys"}, claim="all writers agree", holds=same)


def check_partitioner(last: int) -> Finding:
    """For each number of partitions up to 50, with a thousand keys. `last` of 0 is the number one
    past the last partition."""
    wrong = 0
    for partitions in range(1, 51):
        chosen = {
            key: choose_partition(HOT, last, key, partitions)
            for key in (HOT, *(f"fruit {number}" for number in range(1_000)))
        }
        inside = all(0 <= each < partitions for each in chosen.values())
        alone = partitions == 1 or Counter(chosen.values())[chosen[HOT]] == 1
        wrong += not (inside and alone)
    row = {"happens": "a hot key", "way": "1 to 50 partitions", "result": wrong}
    return Finding(row=row, claim="0 <= p < n, and alone", holds=wrong == 0)
