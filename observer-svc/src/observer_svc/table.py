"""The table of `make lag`, from what the observer exposes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from observer_svc.lag import State

LAG, STATE, REACHED = (
    f"hometown_{name}" for name in ("consumer_lag", "consumer_state", "observer_reached")
)
BACKLOGS = {
    "hometown_outbox_rows": "rows in the outbox of {database}",
    "hometown_outbox_age_seconds": "seconds that the oldest of them has waited ({database})",
    "hometown_relay_holders": "relays that publish for {database}",
    "hometown_parked_streams": "streams parked by {consumer}",
}


def format_lags(text: str) -> str:
    """A line for each consumer and topic, then the backlogs of the databases."""
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    rows = [("consumer", "topic", "lag", "by partition", "state"), *to_rows(samples)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines += ["", *(f"{each.value:>12,.6g}  {describe(each)}" for each in find_backlogs(samples))]
    lines += [
        f"{each.labels['server']} cannot be measured now"
        for each in samples
        if each.name == REACHED and not each.value
    ]
    return "\n".join(lines) + "\n"


def to_rows(samples: Iterable[Sample]) -> Sequence[tuple[str, ...]]:
    lags: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    states: dict[str, str] = {}
    for each in samples:
        if each.name == LAG:
            place = each.labels["consumer"], each.labels["topic"]
            lags[place][int(each.labels["partition"])] = int(each.value)
        elif each.name == STATE:
            states[each.labels["consumer"]] = State(int(each.value)).name
    return [
        (
            consumer,
            topic,
            f"{sum(by_partition.values()):,}",
            " ".join(str(by_partition[number]) for number in sorted(by_partition)),
            states.get(consumer, ""),
        )
        for (consumer, topic), by_partition in sorted(lags.items())
    ]


def find_backlogs(samples: Iterable[Sample]) -> Sequence[Sample]:
    return [each for each in samples if each.name in BACKLOGS]


def describe(sample: Sample) -> str:
    return BACKLOGS[sample.name].format_map(sample.labels)
