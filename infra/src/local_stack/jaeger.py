"""Jaeger under the supervisor; its binary has several sources, and nothing waits for it."""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fetching.environment import inherit_for_downloads
from fetching.settings import INFRA
from local_stack.progress import duration
from local_stack.readiness import http_probe
from local_stack.run_folder import RunFolder, read_json, write_json
from local_stack.stack_spec import Port, Process, StackContext, Tier

CONFIG = INFRA / "jaeger" / "config.yaml"


def command(context: StackContext) -> Sequence[str]:
    """The launcher becomes Jaeger as soon as it has a binary."""
    return [sys.executable, "-m", "local_stack.jaeger_launcher"]


def variables(context: StackContext) -> Mapping[str, str]:
    """The launcher's settings are those of the verb that started it."""
    settings = context.settings
    sources = {
        "JAEGER_BIN": settings.jaeger_bin,
        "HOMETOWN_JAEGER_RELEASE_URL": settings.jaeger_release_url,
        "HOMETOWN_JAEGER_SHA256": settings.jaeger_sha256,
    }
    return {
        **inherit_for_downloads(),
        **{name: str(value) for name, value in sources.items() if value},
        "HOMETOWN_RUN_DIR": str(context.folder.path),
        "HOMETOWN_CACHE_DIR": str(context.settings.cache_dir),
        "JAEGER_QUERY_PORT": str(context.ports["jaeger"]),
        "JAEGER_OTLP_PORT": str(context.ports["otlp"]),
        # Jaeger would trace its own queries, and send that to a port without a server.
        "OTEL_TRACES_SAMPLER": "always_off",
    }


def note_path(folder: RunFolder) -> Path:
    return folder / "jaeger.json"


def write_note(folder: RunFolder, note: str, *, began_at_seconds: float | None = None) -> None:
    """Say why Jaeger does not answer yet, or why it never will; for `status`."""
    write_json(note_path(folder), {"note": note, "began_at_seconds": began_at_seconds})


def read_note(folder: RunFolder) -> str:
    """The note, and for how long Jaeger has been at it; empty when there is none."""
    content = read_json(note_path(folder))
    if content is None:
        return ""
    began = content["began_at_seconds"]
    return str(content["note"]) + (f" {duration(time.time() - began)}" if began else "")


JAEGER = Process(
    name="jaeger",
    command=command,
    environment=variables,
    ports=(
        Port(name="jaeger", default=16686, scheme="http://"),
        Port(name="otlp", default=4318, scheme="http://"),
    ),
    probe=http_probe("jaeger", "/api/services"),
    tier=Tier.FOUNDATION,
    required=False,
    stop_as_group=True,
    note=read_note,
)
