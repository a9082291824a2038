"""The dashboards of Grafana, as code: `make generate` writes infra/observability/dashboards.

One is of a service that its reader chooses; the choice follows from the declarations. Every metric
in them is in infra/observability/metrics.toml; a test compares them.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableOption

from local_stack.settings import CHECKOUT
from shared.runtime.declarations import load_declarations

FOLDER = CHECKOUT / "infra" / "observability" / "dashboards"
SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")
WIDTH, HEIGHT = 8, 8
"""Three panels side by side: a row is 24 wide."""
MINUTES = "5m"
"""The window of rates: sixty values."""

SECONDS, SHARE, BYTES, PER_SECOND, NUMBER = "s", "percentunit", "bytes", "ops", "short"


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and what its series are called; `{{job}}` is the value of a label."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart. Its description says what is normal, or what to do."""

    title: str
    unit: str
    description: str
    queries: Sequence[Query]
    least: float | None = 0
    """Where the axis begins; None: below the smallest value."""


Rows = Mapping[str, Sequence[Panel]]


def quantile(share: float, metric: str, *labels: str, matching: str = "") -> str:
    """Of a histogram, over the last minutes, for each combination of the labels."""
    rates = f"rate({metric}_bucket{matching}[{MINUTES}])"
    return f"histogram_quantile({share}, sum by ({', '.join(('le', *labels))}) ({rates}))"


def rate(metric: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) (rate({metric}[{MINUTES}]))"


REQUESTS = "http_server_request_duration_seconds"
DECISION = "hometown_order_decision_duration_seconds"
CANARY = "hometown_canary_duration_seconds"
RELAY = "hometown_relay_delay_seconds"
BATCH = "hometown_inbox_batch_duration_seconds"
JOB_BATCH = "hometown_job_batch_duration_seconds"
ROW = "hometown_job_row_age_seconds"

OVERVIEW: Rows = {
    "Requests": [
        Panel(
            "Rate",
            PER_SECOND,
            "Requests in a second, by process.",
            [Query(rate(f"{REQUESTS}_count", "job"), "{{job}}")],
        ),
        Panel(
            "Errors",
            PER_SECOND,
            "Responses of 500 and above. 503 refuses orders while too many wait.",
            [
                Query(
                    f"sum by (job, http_response_status_code) "
                    f'(rate({REQUESTS}_count{{http_response_status_code=~"5.."}}[{MINUTES}]))',
                    "{{job}} {{http_response_status_code}}",
                )
            ],
        ),
        Panel(
            "Duration",
            SECONDS,
            "95 of 100 requests are shorter. Requests that wait for a decision are among them.",
            [Query(quantile(0.95, REQUESTS, "job"), "{{job}}")],
        ),
    ],
    "Objectives": [
        Panel(
            "Share of orders that miss an objective",
            SHARE,
            "One in a hundred may. BudgetBurnsFast fires above 14.4 of 100 for an hour.",
            [
                Query("slo:errors:ratio_rate5m", "{{slo}}, 5 minutes"),
                Query("slo:errors:ratio_rate1h", "{{slo}}, 1 hour"),
                Query("slo:errors:ratio_rate1d", "{{slo}}, 1 day"),
            ],
        ),
        Panel(
            "From placement to decision, and from confirmation to row",
            SECONDS,
            "99 of 100 are faster. A row is as old as the oldest order of its batch.",
            [
                Query(quantile(0.99, DECISION, "outcome"), "{{outcome}}"),
                Query(quantile(0.99, ROW), "row"),
            ],
        ),
        Panel(
            "Canary",
            SECONDS,
            "95 of 100 orders of the canary are faster; nothing unless `make canary` runs.",
            [
                Query(quantile(0.95, CANARY, "stage"), "{{stage}}"),
                Query(
                    "sum by (outcome) "
                    '(increase(hometown_canary_orders_total{outcome!="counted"}[1h]))',
                    "{{outcome}}, in an hour",
                ),
            ],
        ),
    ],
    "Delivery": [
        Panel(
            "Lag",
            NUMBER,
            "Records that a consumer has not consumed. One that shrinks is no problem.",
            [Query("sum by (consumer) (hometown_consumer_lag)", "{{consumer}}")],
        ),
        Panel(
            "Outbox",
            SECONDS,
            "How long the oldest row waits, and how long an event takes to Kafka (95 of 100).",
            [
                Query("max by (database) (hometown_outbox_age_seconds)", "oldest of {{database}}"),
                Query(quantile(0.95, RELAY, "job"), "{{job}}"),
            ],
        ),
        Panel(
            "Messages that were not applied",
            NUMBER,
            "In five minutes. Parked streams wait for an operator: the runbook StreamParked.",
            [
                Query(
                    "sum by (job, outcome) (increase(hometown_inbox_messages_total"
                    f'{{outcome=~"parked|waiting|dead-letter"}}[{MINUTES}]))',
                    "{{job}} {{outcome}}",
                ),
                Query(
                    "sum by (database, consumer) (hometown_parked_streams)",
                    "{{consumer}} streams parked",
                ),
            ],
        ),
        Panel(
            "Rates",
            PER_SECOND,
            "Recorded events, published records and applied messages in a second.",
            [
                Query(rate("hometown_append_events_total", "category"), "recorded {{category}}"),
                Query(rate("hometown_relay_records_total", "topic"), "published {{topic}}"),
                Query(
                    "sum by (job) (rate(hometown_inbox_messages_total"
                    f'{{outcome="applied"}}[{MINUTES}]))',
                    "applied {{job}}",
                ),
            ],
        ),
        Panel(
            "Written and not applied, for ten minutes",
            NUMBER,
            "What stays was lost or parked: none, or `make replay` of the service that wrote it.",
            [
                Query(
                    "min_over_time(hometown_delivery_difference[10m])",
                    "{{consumer}}",
                )
            ],
            least=None,
        ),
        Panel(
            "Batches of workers",
            SECONDS,
            "95 of 100 transactions of a worker are shorter.",
            [Query(quantile(0.95, BATCH, "job"), "{{job}}")],
        ),
        Panel(
            "Attempts that failed",
            NUMBER,
            "In five minutes: a server that is not there, and appends that lost a race.",
            [
                Query(
                    f"sum by (job) (increase(hometown_inbox_retries_total[{MINUTES}]))", "{{job}}"
                ),
                Query(
                    f"sum by (job) (increase(hometown_relay_retries_total[{MINUTES}]))", "{{job}}"
                ),
                Query(
                    f"sum by (category) (increase(hometown_append_conflicts_total[{MINUTES}]))",
                    "conflicts of {{category}}",
                ),
            ],
        ),
    ],
    "Machine": [
        Panel(
            "Free on disks",
            SHARE,
            "DiskNearlyFull fires below a tenth and 10 GB.",
            [
                Query(
                    "min by (disk) (hometown_disk_free_bytes / hometown_disk_size_bytes)",
                    "{{disk}}",
                )
            ],
        ),
        Panel(
            "Memory",
            BYTES,
            "Resident memory of each process; Java's of the job is not in it.",
            [Query("sum by (job) (process_resident_memory_bytes)", "{{job}}")],
        ),
        Panel(
            "Processor",
            NUMBER,
            "Cores that each process uses.",
            [Query(f"sum by (job) (rate(process_cpu_seconds_total[{MINUTES}]))", "{{job}}")],
        ),
        Panel(
            "Processes that respond",
            NUMBER,
            "1 for each; those on request are 0 unless they run.",
            [Query("min by (job) (up)", "{{job}}")],
        ),
        Panel(
            "Clocks",
            SECONDS,
            "Clocks of processes against Prometheus, of databases against the observer.",
            [
                Query(
                    "hometown_process_clock_seconds - timestamp(hometown_process_clock_seconds)",
                    "{{job}}",
                ),
                Query("hometown_clock_skew_seconds", "{{database}}"),
            ],
            least=None,
        ),
        Panel(
            "Open files",
            NUMBER,
            "Files and connections of each process.",
            [Query("sum by (job) (process_open_fds)", "{{job}}")],
        ),
    ],
}

JOB: Rows = {
    "Orders": [
        Panel(
            "Orders",
            PER_SECOND,
            "In committed batches, by what became of them.",
            [Query(rate("hometown_job_orders_total", "outcome"), "{{outcome}}")],
        ),
        Panel(
            "Late, and bad records",
            NUMBER,
            "In an hour. A late order was before the watermark when it was read.",
            [
                Query(
                    "sum by (outcome) "
                    '(increase(hometown_job_orders_total{outcome=~"late|bad"}[1h]))',
                    "{{outcome}}",
                )
            ],
        ),
        Panel(
            "Differences from the event stores",
            NUMBER,
            "Cells of final hours in the last comparison: none, or the runbook CellsDiffer.",
            [Query("max(hometown_reconcile_differences)", "cells")],
        ),
    ],
    "Batches": [
        Panel(
            "Duration",
            SECONDS,
            "Half, and 95 of 100, are shorter.",
            [
                Query(quantile(0.5, JOB_BATCH), "half"),
                Query(quantile(0.95, JOB_BATCH), "95 of 100"),
            ],
        ),
        Panel(
            "Age of rows",
            SECONDS,
            "From the confirmation of the oldest order of a batch to its row; under load 4 s.",
            [Query(quantile(0.5, ROW), "half"), Query(quantile(0.99, ROW), "99 of 100")],
        ),
        Panel(
            "Last commit",
            SECONDS,
            "Time since the last batch: it rises while there are no orders.",
            [Query("max(hometown_job_commit_age_seconds)", "age")],
        ),
    ],
    "Time": [
        Panel(
            "Event time",
            SECONDS,
            "From the latest order to now, and from the watermark to the latest order.",
            [
                Query("max(hometown_job_event_lag_seconds)", "latest order"),
                Query("max(hometown_job_watermark_lag_seconds)", "watermark"),
            ],
        ),
        Panel(
            "Lag",
            NUMBER,
            "Records of each topic that the job has not counted.",
            [
                Query(
                    'sum by (topic) (hometown_consumer_lag{consumer="analytics-job"})', "{{topic}}"
                )
            ],
        ),
        Panel(
            "Free on the disk of the checkpoint",
            BYTES,
            "The checkpoint holds the orders that are newer than the watermark.",
            [Query('min by (disk) (hometown_disk_free_bytes{disk="spark"})', "{{disk}}")],
        ),
    ],
}

SERVICE = "service"
"""The variable with the name of the service that is shown."""
ITS_PROCESSES, ITS_CONSUMERS = f'{{job=~"${SERVICE}-.+"}}', f'{{consumer=~"${SERVICE}-.+"}}'
ITS_DATABASE = f'{{database="${SERVICE}"}}'

ONE_SERVICE: Rows = {
    "Requests": [
        Panel(
            "Rate",
            PER_SECOND,
            "Requests in a second, by route.",
            [Query(rate(f"{REQUESTS}_count{ITS_PROCESSES}", "http_route"), "{{http_route}}")],
        ),
        Panel(
            "Responses",
            PER_SECOND,
            "By status: 4xx are refusals, each with its reason; 5xx are errors.",
            [
                Query(
                    rate(f"{REQUESTS}_count{ITS_PROCESSES}", "http_response_status_code"),
                    "{{http_response_status_code}}",
                )
            ],
        ),
        Panel(
            "Duration",
            SECONDS,
            "95 of 100 requests are shorter.",
            [Query(quantile(0.95, REQUESTS, matching=ITS_PROCESSES), "all routes")],
        ),
    ],
    "Events": [
        Panel(
            "Recorded and published",
            PER_SECOND,
            "Events in a second: what is recorded is published by the relay.",
            [
                Query(
                    rate(f"hometown_append_events_total{ITS_PROCESSES}", "category"),
                    "recorded {{category}}",
                ),
                Query(
                    rate(f"hometown_relay_records_total{ITS_PROCESSES}", "topic"),
                    "published {{topic}}",
                ),
            ],
        ),
        Panel(
            "To Kafka",
            SECONDS,
            "How long an event takes (95 of 100), and how long the oldest row of the outbox waits.",
            [
                Query(quantile(0.95, RELAY, matching=ITS_PROCESSES), "95 of 100"),
                Query(f"max(hometown_outbox_age_seconds{ITS_DATABASE})", "oldest row"),
            ],
        ),
        Panel(
            "Attempts that failed",
            NUMBER,
            "In five minutes: a server that is not there, and appends that lost a race.",
            [
                Query(
                    f"sum by (job) (increase({metric}{ITS_PROCESSES}[{MINUTES}]))",
                    f"{{{{job}}}} {words}",
                )
                for metric, words in (
                    ("hometown_relay_retries_total", "retries"),
                    ("hometown_inbox_retries_total", "retries"),
                    ("hometown_append_conflicts_total", "conflicts"),
                )
            ],
        ),
    ],
    "Messages": [
        Panel(
            "Handled",
            PER_SECOND,
            "Messages in a second, by what became of them.",
            [
                Query(
                    rate(f"hometown_inbox_messages_total{ITS_PROCESSES}", "outcome"), "{{outcome}}"
                )
            ],
        ),
        Panel(
            "Lag",
            NUMBER,
            "Records of each topic that its worker has not consumed.",
            [Query(f"sum by (topic) (hometown_consumer_lag{ITS_CONSUMERS})", "{{topic}}")],
        ),
        Panel(
            "Parked, or written and not applied",
            NUMBER,
            "None: parked streams wait for an operator, and what stays was lost or parked.",
            [
                Query(f"sum(hometown_parked_streams{ITS_CONSUMERS})", "streams parked"),
                Query(
                    f"min_over_time(hometown_delivery_difference{ITS_CONSUMERS}[10m])",
                    "not applied by {{consumer}}",
                ),
            ],
            least=None,
        ),
    ],
    "Processes": [
        Panel(
            "Processes that respond",
            NUMBER,
            "1 for each.",
            [Query(f"min by (job) (up{ITS_PROCESSES})", "{{job}}")],
        ),
        Panel(
            "Memory",
            BYTES,
            "Resident memory of each process.",
            [Query(f"sum by (job) (process_resident_memory_bytes{ITS_PROCESSES})", "{{job}}")],
        ),
        Panel(
            "Processor",
            NUMBER,
            "Cores that each process uses.",
            [Query(rate(f"process_cpu_seconds_total{ITS_PROCESSES}", "job"), "{{job}}")],
        ),
    ],
}

DASHBOARDS: Mapping[str, tuple[str, Rows]] = {
    "overview": ("Hometown", OVERVIEW),
    "job": ("Hometown: the job", JOB),
    SERVICE: ("Hometown: a service", ONE_SERVICE),
}
"""By the name of the file, which is also the uid."""


def build(uid: str, title: str, rows: Rows) -> dashboard.Dashboard:
    built = (
        dashboard.Dashboard(title)
        .uid(f"hometown-{uid}")
        .tags(["hometown"])
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("utc")
        .readonly()
    )
    if uid == SERVICE:
        built = built.with_variable(build_choice(load_declarations().event_stores))
    for number, (name, panels) in enumerate(rows.items(), start=1):
        built = built.with_row(dashboard.Row(name).id(number))
        for panel in panels:
            built = built.with_panel(build_panel(panel))
    return built


def build_choice(services: Sequence[str]) -> dashboard.CustomVariable:
    """The variable of a dashboard: one of the services, at first the first one."""
    options = [
        VariableOption(selected=each == services[0], text=each, value=each) for each in services
    ]
    return (
        dashboard.CustomVariable(SERVICE)
        .values(",".join(services))
        .options(options)
        .current(options[0])
    )


def build_panel(panel: Panel) -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    built = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .span(WIDTH)
        .height(HEIGHT)
        .legend(legend)
    )
    if panel.least is not None:
        built = built.min(panel.least)
    for number, query in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend)
        built = built.with_target(target.ref_id(chr(ord("A") + number)))
    return built


def generate() -> Mapping[str, str]:
    """The text of each dashboard by the name of its file."""
    return {
        f"{uid}.json": JSONEncoder(sort_keys=True, indent=2).encode(build(uid, title, rows).build())
        + "\n"
        for uid, (title, rows) in DASHBOARDS.items()
    }


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in generate().items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)
            sys.stdout.write(f"wrote {folder / name}\n")


if __name__ == "__main__":
    write(FOLDER)
