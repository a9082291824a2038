"""The files of the contracts: generated schemas, samples, and the last release."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts import asyncapi
from contracts.compatibility import Promise, broken_promises
from contracts.event_schemas import Schema, example_of, schema_of
from contracts.promises import CONTRACT_ON, CONTRACTS, Contract
from shared.eventsourcing.codec import FIRST_VERSION, Codec
from shared.messaging.topics import TOPICS

ROOT = Path(__file__).resolve().parent
RELEASED = ROOT / "released.json"

Promises = dict[str, Promise]


class SampleError(Exception):
    """The sample of a version cannot be made from the one before it."""


def released(path: Path = RELEASED) -> Promises:
    """The schemas of the last release; empty before the first one."""
    promises: Promises = json.loads(path.read_text()) if path.exists() else {}
    return promises


def promises_of_the_code(before: Promises) -> Promises:
    """The schemas of the code. Versions older than those it writes are taken from the release."""
    return {
        contract.topic: {
            "key": contract.key,
            "partitions": TOPICS[contract.topic].partitions,
            "types": {name: versions_of(contract, name, before) for name in contract.public.names},
        }
        for contract in CONTRACTS
    }


def versions_of(contract: Contract, name: str, before: Promises) -> Schema:
    """The schemas of a type by version."""
    newest = contract.public.get_version(name)
    types = before.get(contract.topic, {"types": {}})["types"]
    older = {
        version: schema
        for version, schema in types.get(name, {}).items()
        if FIRST_VERSION <= int(version) < newest
    }
    return older | {str(newest): schema_of(contract.topic, contract.public, name)}


def sample_path(root: Path, topic: str, name: str, version: int | str) -> Path:
    return root / "samples" / topic / f"{name}.v{version}.json"


def private_sample_folder(checkout: Path, contract: Contract) -> Path:
    """Next to the unit tests of the service: no other one knows the events."""
    return checkout / contract.service / "tests/unit/samples"


def private_sample_path(checkout: Path, contract: Contract, name: str) -> Path:
    version = contract.private.get_version(name)
    return private_sample_folder(checkout, contract) / f"{name}.v{version}.json"


def generated(promises: Promises, samples: Path) -> dict[str, str]:
    """The text of each generated file, by its path below the root."""
    files = {
        f"schemas/{topic}/{name}.v{version}.json": text_of(schema)
        for topic, name, version, schema in all_schemas(promises)
    }
    examples = {
        (topic, name, version): json.loads(sample_path(samples, topic, name, version).read_text())
        for topic, name, version, _ in all_schemas(promises)
    }
    return files | {"asyncapi.json": text_of(asyncapi.document(promises, examples))}


def all_schemas(promises: Promises) -> Iterator[tuple[str, str, str, Schema]]:
    for topic, promise in promises.items():
        for name, versions in promise["types"].items():
            for version, schema in versions.items():
                yield topic, name, version, schema


def stale(root: Path, wanted: Mapping[str, str]) -> list[str]:
    """Paths below the root whose file differs from the wanted text, or is not wanted."""
    there = {
        str(path.relative_to(root)): path.read_text()
        for path in (*(root / "schemas").glob("*/*.json"), *root.glob("asyncapi.json"))
    }
    return sorted(path for path in {*wanted, *there} if wanted.get(path) != there.get(path))


def write(root: Path, wanted: Mapping[str, str]) -> list[str]:
    """Write the files that differ from the wanted ones; return their paths."""
    changed = stale(root, wanted)
    for path in changed:
        if path in wanted:
            write_text(root / path, wanted[path])
        else:
            (root / path).unlink()
    return changed


def missing_samples(root: Path, promises: Promises) -> dict[Path, tuple[Codec[Any], Schema]]:
    """Return the path of each sample that is not there, with what it is begun from."""
    wanted = {
        sample_path(root, topic, name, version): (CONTRACT_ON[topic].public, schema)
        for topic, name, version, schema in all_schemas(promises)
    }
    for contract in CONTRACTS:
        for name in contract.private.names:
            schema = schema_of(contract.topic, contract.private, name)
            path = private_sample_path(root.parent, contract, name)
            wanted[path] = (contract.private, schema)
    return {path: each for path, each in wanted.items() if not path.exists()}


def begin_sample(path: Path, codec: Codec[Any], schema: Schema) -> object:
    """Return the sample of the version before, upcast; an example of the schema without one.

    Raises:
        SampleError: the upcast does not make this version of it.
    """
    name, _, number = path.stem.rpartition(".v")
    version = int(number)
    before = path.with_stem(f"{name}.v{version - 1}")
    if version != codec.get_version(name) or not before.exists():
        return example_of(schema)
    try:
        return json.loads(codec.encode(codec.decode(name, before.read_bytes(), version - 1)))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SampleError(
            f"{before.name}: the upcast does not make version {version} of it: {reason}"
        ) from error


def release(path: Path, promises: Promises) -> list[str]:
    """Store the schemas of the code as released; if that breaks promises, return them instead."""
    broken = broken_promises(released(path), promises)
    if not broken:
        write_text(path, text_of(promises))
    return broken


def text_of(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
