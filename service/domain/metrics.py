"""The metrics of the service: name, unit, meaning and labels of each, and one measured value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from service.domain.tracking.events import Recommendation
from service.domain.tracking.status import DriftQuantity

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by Prometheus' naming rules: the unit is in the name, and a counter ends with _total.

    `values` are all values of the only label, where they are known: their series begin at 0, so that the first count is seen as a rise.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of a metric, and the values of its labels in their order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


REQUEST_DURATION = Metric(
    "http_server_request_duration_seconds",
    "histogram",
    "s",
    "Time from a request's arrival to its answer",
    ("http_request_method", "http_route", "http_response_status_code"),
)
REQUESTS_WAITING = Metric("outlay_web_requests_waiting", "gauge", "requests", "Requests that have arrived and wait for a thread")
REQUESTS_RUNNING = Metric("outlay_web_requests_running", "gauge", "requests", "Requests that threads work on")
THREADS = Metric("outlay_web_threads", "gauge", "threads", "Threads for requests, in all web processes of the machine")
REQUESTS_REFUSED = Metric(
    "outlay_web_requests_refused_total",
    "counter",
    "requests",
    "Requests refused before the application: overload (too many wait), slow (not arrived in time), long_head, address (too many of one)",
    ("reason",),
    ("overload", "slow", "long_head", "address"),
)
KEYS_REFUSED = Metric(
    "outlay_keys_refused_total",
    "counter",
    "requests",
    "Requests refused for their API key: missing, invalid (unknown, revoked or expired), scope (it may not do that)",
    ("reason",),
    ("missing", "invalid", "scope"),
)
RATE_LIMITED = Metric("outlay_rate_limited_total", "counter", "requests", "Requests refused because their API key made too many")
BUDGETS = ("cpu-seconds", "estimates", "rows", "concurrent-requests")
BUDGETS_USED_UP = Metric(
    "outlay_budgets_used_up_total",
    "counter",
    "requests",
    "Requests refused because a work budget of their team was used up",
    ("budget",),
    BUDGETS,
)
JOB_OUTCOMES = ("succeeded", "failed", "cancelled", "released", "lease_lost")
JOB_ATTEMPTS = Metric(
    "outlay_job_attempts_total",
    "counter",
    "attempts",
    "Attempts at background jobs: succeeded, failed, cancelled, released (the worker shut down), lease_lost (another worker has the job)",
    ("kind", "outcome"),
)
JOB_DURATION = Metric("outlay_job_duration_seconds", "histogram", "s", "Time of an attempt at a background job", ("kind",))
DELIVERY_ATTEMPTS = Metric(
    "outlay_delivery_attempts_total",
    "counter",
    "attempts",
    "Attempts to deliver a webhook or Slack message: delivered, failed (tried again later), dead (given up)",
    ("outcome",),
    ("delivered", "failed", "dead"),
)
COUNTED: tuple[Metric, ...] = (
    REQUEST_DURATION,
    REQUESTS_WAITING,
    REQUESTS_RUNNING,
    THREADS,
    REQUESTS_REFUSED,
    KEYS_REFUSED,
    RATE_LIMITED,
    BUDGETS_USED_UP,
    JOB_ATTEMPTS,
    JOB_DURATION,
    DELIVERY_ATTEMPTS,
)
"""What processes count as they work: those of one machine are added up."""

BUILD = Metric("outlay_build_info", "gauge", "1", "Always 1; the version is in its label", ("engine_version",))
DATABASE_UP = Metric("outlay_database_up", "gauge", "0 or 1", "Whether the database answers within 0.1 s")
READING_AGE = Metric("outlay_reading_age_seconds", "gauge", "s", "Age of what was read of the database: large while it does not answer")
DATABASE_LATENCY = Metric("outlay_database_response_seconds", "gauge", "s", "Time of the smallest query")
DATABASE_BYTES = Metric("outlay_database_size_bytes", "gauge", "bytes", "Size of the database")
DISK_FREE = Metric("outlay_disk_free_bytes", "gauge", "bytes", "Free space on the disk of the data directory")
DISK_SIZE = Metric("outlay_disk_size_bytes", "gauge", "bytes", "Size of the disk of the data directory")
REDIS_UP = Metric("outlay_redis_up", "gauge", "0 or 1", "Whether Redis answers; absent where none is configured")
JOBS = Metric("outlay_jobs", "gauge", "jobs", "Background jobs: queued, running, lost (their lease has run out)", ("state",))
JOBS_OLDEST = Metric("outlay_jobs_oldest_waiting_seconds", "gauge", "s", "Waiting time of the oldest queued or lost job; 0 without any")
WORKERS = Metric("outlay_workers_alive", "gauge", "workers", "Workers heard of in the last 30 s")
DELIVERIES = Metric("outlay_deliveries_pending", "gauge", "deliveries", "Webhooks and Slack messages that are not delivered yet")
DELIVERIES_OVERDUE = Metric("outlay_deliveries_overdue_seconds", "gauge", "s", "Time since the oldest delivery was due; 0 without any")
EVENTS_WAITING = Metric("outlay_events_unprojected", "gauge", "events", "Stored events that no worker has summed up into hours yet")
PRICE_AGE = Metric("outlay_price_age_seconds", "gauge", "s", "Time since the prices of a source were last seen to hold", ("provider",))
PRICE_FRESH_FOR = Metric("outlay_price_fresh_for_seconds", "gauge", "s", "Age up to which a source's prices count as fresh", ("provider",))
PROVIDER_STATE = Metric(
    "outlay_price_provider_state", "gauge", "0 or 1", "1 for the present state of each price source", ("provider", "state")
)
OPEN_READINGS: tuple[Metric, ...] = (
    BUILD,
    DATABASE_UP,
    READING_AGE,
    DATABASE_LATENCY,
    DATABASE_BYTES,
    DISK_FREE,
    DISK_SIZE,
    REDIS_UP,
    JOBS,
    JOBS_OLDEST,
    WORKERS,
    DELIVERIES,
    DELIVERIES_OVERDUE,
    EVENTS_WAITING,
    PRICE_AGE,
    PRICE_FRESH_FOR,
    PROVIDER_STATE,
)
"""What is read of the database and the disk: it names no team, and anybody may read it."""

OF_PROGRAM = ("team", "program", "name")
QUANTILES = {"0.1": "p10", "0.5": "p50", "0.9": "p90"}
RECOMMENDATIONS: tuple[str, ...] = get_args(Recommendation)
DRIFTS: tuple[str, ...] = get_args(DriftQuantity)


def _of_program(name: str, unit: str, text: str, *labels: str) -> Metric:
    return Metric(f"outlay_program_{name}", "gauge", unit, text, (*OF_PROGRAM, *labels))


SPEND = _of_program("spend_usd", "USD", "Spend to date: what is known of it")
BUDGET = _of_program("budget_usd", "USD", "Budget")
EAC = _of_program("eac_usd", "USD", "Estimate at completion at the present CPI (BAC / CPI)")
FORECAST_COST = _of_program("forecast_cost_usd", "USD", "Forecast cost at completion", "quantile")
FORECAST_FINISH = _of_program("forecast_finish_timestamp_seconds", "s since 1970", "Forecast finish", "quantile")
DEADLINE = _of_program("deadline_timestamp_seconds", "s since 1970", "Deadline")
BURN = _of_program("burn_rate_usd_per_day", "USD per day", "Cost a day")
CPI = _of_program("cost_performance_index", "1", "CPI: above 1, work costs less than planned")
SPI = _of_program("schedule_performance_index", "1", "SPI: above 1, more is done than planned")
DONE = _of_program("done_ratio", "1", "Part of the planned tokens that is done")
GOODPUT = _of_program("goodput_ratio", "1", "Useful time over wall-clock time")
GATE_DUE = _of_program("gate_due", "0 or 1", "Whether the half-spend gate is due and undecided")
GATE = _of_program("gate_recommendation", "0 or 1", "1 for what the half-spend gate recommends", "recommendation")
DRIFT = _of_program("drift_ratio", "1", "Largest lasting change of a run's rate: -0.15 is 15 % less; 0 without any", "quantity")
SILENT_RUNS = _of_program("silent_runs", "runs", "Runs without an event for far longer than usual")
INTERRUPTIONS = _of_program("interruptions", "interruptions", "Interruptions to date")
EVALUATED = _of_program("evaluated_timestamp_seconds", "s since 1970", "When a worker computed these figures")
PROGRAM_FIGURES: tuple[Metric, ...] = (
    SPEND,
    BUDGET,
    EAC,
    FORECAST_COST,
    FORECAST_FINISH,
    DEADLINE,
    BURN,
    CPI,
    SPI,
    DONE,
    GOODPUT,
    GATE_DUE,
    GATE,
    DRIFT,
    SILENT_RUNS,
    INTERRUPTIONS,
    EVALUATED,
)
"""Figures of each open tracked program."""
PROGRAMS_OMITTED = Metric("outlay_programs_omitted", "gauge", "programs", "Open programs left out: only the newest 1,000 are shown")
TEAM_WORK = Metric("outlay_team_work_used_ratio", "gauge", "1", "Part of a team's work budget that is used now", ("team", "budget"))
KEYED_READINGS: tuple[Metric, ...] = (*PROGRAM_FIGURES, PROGRAMS_OMITTED, TEAM_WORK)
"""What names teams and programs: only for those who hold OUTLAY_METRICS_KEY."""

METRICS: tuple[Metric, ...] = (*COUNTED, *OPEN_READINGS, *KEYED_READINGS)


def markdown_table(metrics: tuple[Metric, ...]) -> str:
    """The metrics as a table for the documentation."""
    lines = ["| metric | type | unit | labels | meaning |", "|---|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {metric.unit} | {labels} | {metric.help} |")
    return "\n".join(lines) + "\n"
