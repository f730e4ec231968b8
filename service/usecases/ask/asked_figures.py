"""Figures of a run that a question asks for, as sentences before those of the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from service.domain.quantities import Range
from service.formats.headline import HOURS_PER_DAY, duration, money, short_count

Body = Mapping[str, Any]
SECONDS_PER_HOUR = 3600.0


def asked_text(fields: Iterable[str], estimate: Body) -> str:
    """The figures at fields of an estimate's answer, in a sentence each; fields without a sentence say nothing.

    Parameters
    ----------
    fields : iterable of str
        Dotted fields, such as `throughput.mfu`.
    estimate : mapping
        The answer of `POST /v1/estimate`.
    """
    return " ".join(SENTENCES[field](estimate) for field in dict.fromkeys(fields) if field in SENTENCES)


def _mfu(estimate: Body) -> str:
    return f"MFU {_share_range(estimate['throughput']['mfu'])}."


def _speed(estimate: Body) -> str:
    speed = estimate["throughput"]
    each = Range(**speed["tokens_per_s_per_accelerator"])
    step = duration(speed["step_time_s"] / SECONDS_PER_HOUR) if speed["step_time_s"] >= 120 else f"{speed['step_time_s']:.3g} s"
    spread = f"{short_count(each.p50)} ({short_count(each.p10)}–{short_count(each.p90)}) on each accelerator"
    return f"{short_count(speed['tokens_per_s'])} tokens/s, {spread}, {step} a step."


def _memory(estimate: Body) -> str:
    memory = estimate["memory"]
    needed, there = f"{memory['per_accelerator_gb']:.3g} GB", f"{memory['capacity_gb']:.3g} GB"
    return f"It {'fits' if memory['fits'] else 'does not fit'}: {needed} of {there} on the fullest accelerator."


def _bubble(estimate: Body) -> str:
    shares = [part["share"] for part in estimate["throughput"]["split"] or () if part["part"] == "pipeline"]
    pipeline = (estimate["throughput"]["parallelism"] or {}).get("pipeline", 1)
    return f"The pipeline's bubble takes {shares[0]:.1%} of the time, with {pipeline} stages." if shares else "No pipeline, and no bubble."


def _bound(estimate: Body) -> str:
    return f"A step is bound by {estimate['throughput']['bound_by']}."


def _flops(estimate: Body) -> str:
    return f"{estimate['flops']['total']:.3g} FLOPs.".replace("e+", "e")


def _goodput(estimate: Body) -> str:
    reliability = estimate["reliability"]
    return f"Goodput {reliability['goodput']:.1%}, a failure every {duration(reliability['mttf_hours'])}."


def _checkpoints(estimate: Body) -> str:
    return f"A checkpoint every {estimate['reliability']['checkpoint_interval_minutes']:.3g} minutes."


def _failures(estimate: Body) -> str:
    reliability = estimate["reliability"]
    return f"A failure every {duration(reliability['mttf_hours'])}, {reliability['expected_interruptions']:.3g} in the run."


def _power(estimate: Body) -> str:
    return f"{estimate['energy']['watts_per_accelerator']:,.0f} W on each accelerator with its share of the node, before cooling."


def _energy(estimate: Body) -> str:
    return f"{estimate['energy']['mwh']:,.3g} MWh, cooling included. {_power(estimate)}"


def _carbon(estimate: Body) -> str:
    return f"About {estimate['energy']['tco2e']:,.3g} tCO2e."


def _p80(estimate: Body) -> str:
    summary = estimate["summary"]
    within = "" if summary["p80_finish_days"] is None else f" and {duration(summary['p80_finish_days'] * HOURS_PER_DAY)}"
    return f"With a probability of 80% under {money(summary['p80_usd'])}{within}."


def _tflops(estimate: Body) -> str:
    return f"{estimate['throughput']['tflops_per_accelerator']:.3g} TFLOP/s on each accelerator, {_mfu(estimate)}"


def _hours(estimate: Body) -> str:
    hours = Range(**estimate["time"]["accelerator_hours"])
    return f"{short_count(hours.p50)} accelerator-hours ({short_count(hours.p10)}–{short_count(hours.p90)})."


def _steps(estimate: Body) -> str:
    return f"{short_count(estimate['time']['steps'])} steps."


def _per_token(estimate: Body) -> str:
    return f"{money(estimate['cost']['usd_per_million_tokens'])} for a million tokens."


def _per_day(estimate: Body) -> str:
    days = estimate["time"]["wall_clock_hours"]["p50"] / HOURS_PER_DAY
    return f"{money(estimate['cost']['total_usd']['p50'] / days)} a day, while it runs."


def _share_range(share: Mapping[str, float]) -> str:
    return f"{share['p50']:.0%} ({share['p10']:.0%}–{share['p90']:.0%})"


SENTENCES: Mapping[str, Callable[[Body], str]] = {
    "throughput.mfu": _mfu,
    "throughput": _speed,
    "throughput.tflops_per_accelerator": _tflops,
    "memory": _memory,
    "throughput.split": _bubble,
    "throughput.bound_by": _bound,
    "flops": _flops,
    "reliability": _goodput,
    "reliability.checkpoint_interval_minutes": _checkpoints,
    "reliability.mttf_hours": _failures,
    "energy.watts_per_accelerator": _power,
    "energy": _energy,
    "energy.tco2e": _carbon,
    "summary.p80_usd": _p80,
    "time.accelerator_hours": _hours,
    "time.steps": _steps,
    "cost.usd_per_million_tokens": _per_token,
    "cost.total_usd": _per_day,
}
"""Sentences by field."""
