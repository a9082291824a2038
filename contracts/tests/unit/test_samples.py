"""Samples of every type and version: they are as the schemas say, and everybody reads them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator, FormatChecker, ValidationError

from analytics_spark.job.records import check
from analytics_spark.job.topics import Topic
from contracts.contract_files import (
    ROOT,
    all_schemas,
    private_sample_folder,
    promises_of_the_code,
    released,
    sample_path,
)
from contracts.event_schemas import Schema
from contracts.promises import CONTRACT_ON, CONTRACTS, SPARK_TOPICS, VIEWS, Contract, View
from shared.eventsourcing.codec import Codec, UnknownSchemaVersion

SCHEMAS = list(all_schemas(promises_of_the_code(released())))
SAMPLES = sorted((ROOT / "samples").glob("*/*.json"))

OTHER_SAMPLE = "delete the sample of the newest version, if it is not released; `make contracts`"

Parts = tuple[str, str, int]


def parts_of(path: Path) -> Parts:
    """Topic, type and version."""
    name, _, version = path.stem.rpartition(".v")
    return path.parent.name, name, int(version)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def validator(schema: Schema) -> Draft202012Validator:
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


def test_every_type_and_version_has_a_sample() -> None:
    missing = [
        named(path)
        for topic, name, version, _ in SCHEMAS
        if not (path := sample_path(ROOT, topic, name, version)).exists()
    ]

    assert missing == [], "run `make contracts`"


def test_there_is_no_sample_of_what_nobody_promises() -> None:
    """It may have been promised once: old events of it are still there."""
    promised = {(topic, name, int(version)) for topic, name, version, _ in SCHEMAS}

    assert {parts_of(path) for path in SAMPLES} == promised


@pytest.mark.parametrize(
    ("topic", "name", "version", "schema"), SCHEMAS, ids=lambda part: str(part)[:40]
)
def test_a_sample_is_as_its_schema_says(
    topic: str, name: str, version: str, schema: Schema
) -> None:
    sample = json.loads(sample_path(ROOT, topic, name, version).read_text())

    validator(schema).validate(sample)
    for field in schema["required"]:
        with pytest.raises(ValidationError):
            validator(schema).validate({key: sample[key] for key in sample if key != field})


@pytest.mark.parametrize("path", SAMPLES, ids=named)
def test_its_service_reads_a_sample_for_ever(path: Path) -> None:
    topic, name, version = parts_of(path)
    codec = CONTRACT_ON[topic].public

    event = codec.decode(name, path.read_bytes(), version)

    assert codec.decode(name, codec.encode(event), codec.get_version(name)) == event
    if version == codec.get_version(name):
        sample, again = json.loads(path.read_text()), json.loads(codec.encode(event))
        assert sample == {field: again.get(field) for field in sample}


READ = [
    pytest.param(view, path, id=f"{view.reader} {named(path)}")
    for view in VIEWS
    for path in SAMPLES
    if parts_of(path)[0] == view.topic and parts_of(path)[1] in view.types
]


@pytest.mark.parametrize(("view", "path"), READ)
def test_every_reader_reads_a_sample_for_ever(view: View, path: Path) -> None:
    _, name, version = parts_of(path)

    assert view.codec.decode(name, path.read_bytes(), version)


def is_read_as_newest(codec: Codec[Any], path: Path) -> bool:
    """Whether the sample of the newest version is that of an older one, upcast."""
    _, name, version = parts_of(path)
    newest = codec.get_version(name)
    event = codec.decode(name, path.with_stem(f"{name}.v{newest}").read_bytes(), newest)
    return bool(codec.decode(name, path.read_bytes(), version) == event)


PRIVATE = [
    pytest.param(contract.private, path, id=f"{contract.service} {path.stem}")
    for contract in CONTRACTS
    for path in sorted(private_sample_folder(ROOT.parent, contract).glob("*.json"))
    if parts_of(path)[1] in contract.private.names
]


def test_every_private_event_has_samples() -> None:
    assert len(PRIVATE) >= sum(len(contract.private.names) for contract in CONTRACTS)


@pytest.mark.parametrize(("codec", "path"), PRIVATE)
def test_its_service_reads_an_older_version_as_it_is_stored(codec: Codec[Any], path: Path) -> None:
    assert is_read_as_newest(codec, path), OTHER_SAMPLE


@pytest.mark.parametrize("path", SAMPLES, ids=named)
def test_its_service_reads_an_older_version_as_the_newest(path: Path) -> None:
    assert is_read_as_newest(CONTRACT_ON[path.parent.name].public, path), OTHER_SAMPLE


@pytest.mark.parametrize(("view", "path"), READ)
def test_every_reader_reads_an_older_version_as_the_newest(view: View, path: Path) -> None:
    assert is_read_as_newest(view.codec, path), OTHER_SAMPLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    address: str


def test_an_upcast_that_makes_another_event_is_found(tmp_path: Path) -> None:
    """The negative control."""
    for version, address in ((1, "bj"), (2, "BJ")):
        (tmp_path / f"moved.v{version}.json").write_text(json.dumps({"address": address}))

    def read(address: str) -> bool:
        codec = Codec({"moved": Moved}, {"moved": [lambda fields: {"address": address}]})
        return is_read_as_newest(codec, tmp_path / "moved.v1.json")

    assert read("BJ")
    assert not read("SH")


@pytest.mark.parametrize(("view", "path"), READ)
def test_no_reader_minds_a_field_that_it_does_not_know(view: View, path: Path) -> None:
    _, name, version = parts_of(path)
    grown = json.dumps(json.loads(path.read_text()) | {"new": {"deep": [1]}})

    assert view.codec.decode(name, grown, version) == view.codec.decode(
        name, path.read_bytes(), version
    )


@pytest.mark.parametrize(("view", "path"), READ)
def test_no_reader_guesses_at_a_version_that_it_does_not_know(view: View, path: Path) -> None:
    _, name, _ = parts_of(path)

    with pytest.raises(UnknownSchemaVersion):
        view.codec.decode(name, path.read_bytes(), view.codec.get_version(name) + 1)


def test_every_view_has_samples() -> None:
    assert len(READ) >= sum(len(view.types) for view in VIEWS)


READ_BY_SPARK = [
    pytest.param(topic, path, id=named(path))
    for topic in SPARK_TOPICS
    for path in SAMPLES
    if parts_of(path)[0] == topic.name and parts_of(path)[1] in topic.types
]


@pytest.mark.parametrize(("topic", "path"), READ_BY_SPARK)
def test_spark_reads_a_sample_for_ever(topic: Topic, path: Path) -> None:
    result = check(topic, records(topic, parts_of(path)[1], path.read_bytes()))

    assert (result.bad.num_rows, result.rows.num_rows) == (0, 1)


@pytest.mark.parametrize(("topic", "path"), READ_BY_SPARK)
def test_spark_does_not_mind_a_field_that_it_does_not_know(topic: Topic, path: Path) -> None:
    """So a field that is renamed the right way, under both names, is read as before."""
    sample: dict[str, Any] = json.loads(path.read_text())
    grown = json.dumps({"renamed": next(iter(sample.values())), **sample, "new": {"deep": [1]}})
    name = parts_of(path)[1]

    result, before = (
        check(topic, records(topic, name, value)) for value in (grown.encode(), path.read_bytes())
    )

    assert (result.bad.num_rows, result.rows) == (0, before.rows)


@pytest.mark.parametrize(("topic", "path"), READ_BY_SPARK)
def test_spark_does_not_guess_at_a_field_that_was_renamed(topic: Topic, path: Path) -> None:
    sample: dict[str, Any] = json.loads(path.read_text())
    when = "ordered_at" if "ordered_at" in sample else "effective_at"
    sample["happened_at"] = sample.pop(when)

    result = check(topic, records(topic, parts_of(path)[1], json.dumps(sample).encode()))

    assert (result.bad.num_rows, result.rows.num_rows) == (1, 0)


def test_spark_counts_what_it_cannot_read() -> None:
    """The negative control."""
    [topic, *_] = SPARK_TOPICS
    path = sample_path(ROOT, topic.name, "user-registered", 1)
    sample: dict[str, Any] = json.loads(path.read_text())
    del sample["address"]

    result = check(topic, records(topic, "user-registered", json.dumps(sample).encode()))
    assert result.bad.num_rows == 1


def records(topic: Topic, type_: str, value: bytes) -> pa.Table:
    """One record, with the columns that Spark hands over."""
    return pa.table(
        {
            "bucket": pa.array([0], pa.int32()),
            "key": [json.loads(value)[topic.key].encode()],
            "value": [value],
            "type": [type_],
            "seq": [1],
            "partition": pa.array([0], pa.int32()),
            "offset": [0],
            "time": [4_000_000_000_000],
            "traceparent": pa.array([None], pa.string()),
        }
    )


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.topic)
def test_the_key_of_a_message_is_in_its_value(contract: Contract) -> None:
    for topic, _, _, schema in SCHEMAS:
        if topic == contract.topic:
            assert contract.key in schema["required"]
            assert schema["properties"][contract.key] == {"format": "uuid", "type": "string"}
