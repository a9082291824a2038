"""The files are what the code says, and a release never goes back on an older one."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contracts.compatibility import broken_promises
from contracts.contract_files import (
    RELEASED,
    ROOT,
    Promises,
    SampleError,
    begin_sample,
    generated,
    missing_samples,
    promises_of_the_code,
    release,
    released,
    stale,
    versions_of,
    write,
)
from contracts.event_schemas import EXAMPLES, schema_of
from contracts.promises import CONTRACT_ON
from shared.eventsourcing.codec import Codec, Upcast
from test_support.waits import HANGS_AFTER_SECONDS


@pytest.fixture
def promises() -> Promises:
    return promises_of_the_code(released())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the contracts, to be changed."""
    root = tmp_path / "shared" / "contracts"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("__pycache__", "tests", "vendor"))
    return root


def test_the_files_are_what_the_code_says(promises: Promises) -> None:
    assert list(missing_samples(ROOT, promises)) == [], "run `make contracts`"
    assert stale(ROOT, generated(promises, ROOT)) == [], "run `make contracts`"


def test_the_code_keeps_what_was_released(promises: Promises) -> None:
    assert released().keys() <= promises.keys()
    assert broken_promises(released(), promises) == []


def test_a_file_that_is_not_what_the_code_says_is_found_and_written(
    copy: Path, promises: Promises
) -> None:
    wanted = generated(promises, ROOT)
    placed, moved = "schemas/orders.v1/order-placed.v1.json", "schemas/users.v1/user-moved.v1.json"
    (copy / placed).write_text("{}")
    (copy / moved).unlink()
    (copy / "schemas/users.v1/unheard-of.v1.json").write_text("{}")
    found = [placed, "schemas/users.v1/unheard-of.v1.json", moved]

    assert stale(copy, wanted) == found
    assert write(copy, wanted) == found
    assert stale(copy, wanted) == []


def test_the_same_code_gives_the_same_files(promises: Promises) -> None:
    again = subprocess.run(
        [sys.executable, "-c", "from contracts import contract_files as f; print(f.generated("
         "f.promises_of_the_code(f.released()), f.ROOT))"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANGS_AFTER_SECONDS,
    )  # fmt: skip

    assert again.stdout.strip() == str(generated(promises, ROOT))


def test_a_sample_that_is_missing_is_begun(copy: Path, promises: Promises) -> None:
    path = copy / "samples/orders.v1/order-placed.v1.json"
    path.unlink()
    for samples in ROOT.parent.glob("*/tests/unit/samples"):
        shutil.copytree(samples, copy.parent / samples.relative_to(ROOT.parent))

    [(missing, begun)] = missing_samples(copy, promises).items()
    example = begin_sample(missing, *begun)

    assert missing == path
    assert isinstance(example, dict)
    assert example.keys() == json.loads((ROOT / "samples/orders.v1" / path.name).read_text()).keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondForm:
    order_id: UUID


def name_order(fields: dict[str, Any]) -> dict[str, Any]:
    return {"order_id": fields["id"]}


def keep(fields: dict[str, Any]) -> dict[str, Any]:
    return fields


@pytest.fixture
def samples(tmp_path: Path) -> list[Path]:
    """The paths of three samples; only the first is there."""
    paths = [tmp_path / f"order-placed.v{version}.json" for version in (1, 2, 3)]
    paths[0].write_text(json.dumps({"id": str(UUID(int=7))}))
    return paths


def begin(path: Path, *upcasts: Upcast) -> object:
    codec: Codec[Any] = Codec({"order-placed": SecondForm}, {"order-placed": upcasts})
    return begin_sample(path, codec, schema_of("orders.v1", codec, "order-placed"))


def test_the_sample_of_a_new_version_is_the_one_before_it_upcast(samples: list[Path]) -> None:
    first, second, _ = samples
    assert begin(second, name_order) == {"order_id": str(UUID(int=7))}

    first.unlink()
    assert begin(second, name_order) == {"order_id": EXAMPLES["uuid"]}


def test_of_an_older_version_there_is_only_an_example(samples: list[Path]) -> None:
    """Nothing makes it: upcasts lead to the newest."""
    _, second, third = samples

    assert begin(second, name_order, keep) == {"order_id": EXAMPLES["uuid"]}
    assert begin(third, name_order, keep) == {"order_id": EXAMPLES["uuid"]}


@pytest.mark.parametrize("upcast", [keep, lambda fields: {"order_id": fields["name"]}])
def test_an_upcast_that_does_not_make_the_version_is_named(
    samples: list[Path], upcast: Upcast
) -> None:
    with pytest.raises(SampleError, match=r"placed\.v1\.json: the upcast does not make version 2"):
        begin(samples[1], upcast)


def test_a_release_adds_to_what_was_promised_and_breaks_nothing(
    tmp_path: Path, promises: Promises
) -> None:
    path = tmp_path / "released.json"
    assert release(path, promises) == []
    assert released(path) == promises
    types = promises["orders.v1"]["types"]
    without = {name: types[name] for name in types if name != "order-placed"}

    broken = release(path, promises | {"orders.v1": promises["orders.v1"] | {"types": without}})

    assert len(broken) == 1
    assert broken[0].startswith("orders.v1 order-placed: the type was removed")
    assert released(path) == promises


def test_of_an_older_version_the_code_promises_what_was_released(promises: Promises) -> None:
    """Its class is gone, its events are not."""

    second: Codec[Any] = Codec({"order-placed": SecondForm}, {"order-placed": [keep]})
    contract = replace(CONTRACT_ON["orders.v1"], public=second)

    versions = versions_of(contract, "order-placed", promises)

    assert versions["1"] == promises["orders.v1"]["types"]["order-placed"]["1"]
    assert versions["2"]["properties"].keys() == {"order_id"}
    assert versions["2"]["title"] == "order-placed v2"


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "contracts", *words],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


def test_the_command_says_what_is_broken(tmp_path: Path) -> None:
    stricter = json.loads(RELEASED.read_text())
    form = stricter["orders.v1"]["types"]["order-placed"]["1"]
    form["properties"]["voucher"] = {"type": "string"}
    form["required"].append("voucher")
    other = tmp_path / "released.json"
    other.write_text(json.dumps(stricter))

    good, bad = command("check"), command("check", "--against", str(other))

    assert (good.returncode, good.stderr) == (0, "")
    assert bad.returncode == 1
    assert bad.stderr == (
        "orders.v1 order-placed v1: field `voucher` was removed: readers of version 1 still"
        " require it; keep it, or publish order-placed v2\n"
    )


def test_the_command_writes_nothing_when_all_is_written() -> None:
    assert (command("write").stdout, command("write").returncode) == ("", 0)
