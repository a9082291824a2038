"""Prometheus on request, and what it scrapes and evaluates in each way of running a stack."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from fetching.errors import Failure
from fetching.settings import INFRA
from local_stack.readiness import http_probe
from local_stack.run_folder import write_atomically
from local_stack.settings import Settings
from local_stack.stack_spec import HOST, Port, Process, StackContext
from shared.runtime import declarations
from shared.runtime.declarations import load_declarations

ALERTS = INFRA / "observability" / "alerts.yml"
PROGRAM = "prometheus"
SCRAPE_SECONDS = 5
RETENTION = "15d"
"""Longer than the longest window of a rule."""


def demand_program(settings: Settings) -> None:
    """Raises Failure where there is no Prometheus."""
    if find_program(settings) is None:
        raise Failure(
            "there is no Prometheus: install it, or set PROMETHEUS_BIN; in=containers has one"
        )


def find_program(settings: Settings) -> Path | None:
    """The one that was given, or else the installed one."""
    if settings.prometheus_bin:
        return settings.prometheus_bin
    installed = shutil.which(PROGRAM)
    return Path(installed) if installed else None


def command(context: StackContext) -> Sequence[str]:
    return [
        str(find_program(context.settings) or PROGRAM),
        f"--config.file={config_file(context)}",
        f"--storage.tsdb.path={context.folder / 'prometheus' / 'data'}",
        f"--storage.tsdb.retention.time={RETENTION}",
        f"--web.listen-address={context.address('prometheus')}",
    ]


def config_file(context: StackContext) -> Path:
    return context.folder / "prometheus" / "prometheus.yml"


def prepare(context: StackContext) -> None:
    """Write its configuration, with the ports of this stack."""
    jobs = [
        write_job(process, write_static(f"{HOST}:{context.ports[process.name]}", process))
        for process in load_declarations().processes
        if process.name in context.ports
    ]
    config_file(context).parent.mkdir(exist_ok=True)
    write_atomically(config_file(context), write_config(str(ALERTS), jobs))


def write_config(rules: str, jobs: Iterable[str]) -> str:
    """The text of a configuration with these jobs, each of `write_job`."""
    return f"""\
global: {{scrape_interval: {SCRAPE_SECONDS}s, evaluation_interval: {SCRAPE_SECONDS}s}}
rule_files: ["{rules}"]
scrape_configs:
{"".join(jobs)}"""


def write_job(process: declarations.Process, found: str, tls: str = "") -> str:
    """The job of a process has its name, which is the label `job` of all of its series."""
    return f"  - job_name: {process.name}\n{tls}    {found}\n"


def write_static(address: str, process: declarations.Process) -> str:
    """A target that is there whether it responds or not; one on request can be missing."""
    labels = "" if process.profile is None else ', labels: {on_request: "true"}'
    return f'static_configs: [{{targets: ["{address}"]{labels}}}]'


PROMETHEUS = Process(
    name="prometheus",
    command=command,
    ports=(Port(name="prometheus", default=9090, scheme="http://"),),
    prepare=prepare,
    demand=demand_program,
    probe=http_probe("prometheus", "/-/ready"),
    required=False,
    on_request=True,
)
