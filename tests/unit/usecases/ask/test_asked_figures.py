"""Questions that ask for one figure of a run: the answer begins with it, and what it does not depend on need not be said."""

from __future__ import annotations

from typing import Any

import pytest

from service.context import AppContext
from service.domain.teams import EVERYBODY
from service.formats.headline import duration, money
from service.schemas.ask import ask_body
from service.usecases.ask.asked_figures import SENTENCES

Body = dict[str, Any]


def asked(context: AppContext, text: str) -> Body:
    body = ask_body(context, EVERYBODY, text, with_answer=True)
    assert not [entry for entry in body["unclear"] if entry["blocking"]], text
    assert body["answer"] is not None, body["problem"]
    return body


def parts_of(answer: Body) -> dict[str, str]:
    """What each sentence has to say, by its field."""
    speed, memory, reliability, energy = (answer[name] for name in ("throughput", "memory", "reliability", "energy"))
    return {
        "throughput.mfu": f"MFU {100 * speed['mfu']['p50']:.0f}%",
        "throughput": f"{speed['tokens_per_s'] / 1e3:,.0f}K tokens/s" if speed["tokens_per_s"] < 1e6 else "M tokens/s",
        "memory": f"It fits: {memory['per_accelerator_gb']:.3g} GB of {memory['capacity_gb']:.3g} GB",
        "throughput.split": "The pipeline's bubble takes" if speed["parallelism"]["pipeline"] > 1 else "No pipeline",
        "throughput.bound_by": f"bound by {speed['bound_by']}.",
        "flops": f"{answer['flops']['total']:.2e} FLOPs".replace("e+", "e"),
        "reliability": f"Goodput {100 * reliability['goodput']:.1f}%",
        "reliability.checkpoint_interval_minutes": f"every {reliability['checkpoint_interval_minutes']:.3g} minutes",
        "reliability.mttf_hours": f"A failure every {duration(reliability['mttf_hours'])}",
        "energy.watts_per_accelerator": f"{energy['watts_per_accelerator']:,.0f} W on each accelerator",
        "energy": f"{energy['mwh']:,.0f} MWh, cooling included. {energy['watts_per_accelerator']:,.0f} W on each",
        "energy.tco2e": f"About {energy['tco2e']:,.3g} tCO2e.",
        "summary.p80_usd": f"under {money(answer['summary']['p80_usd'])} and",
        "throughput.tflops_per_accelerator": f"{speed['tflops_per_accelerator']:.3g} TFLOP/s on each accelerator",
        "time.accelerator_hours": f"{answer['time']['accelerator_hours']['p50'] / 1e3:.0f},000 accelerator-hours",
        "time.steps": f"{answer['time']['steps'] / 1e6:.2f}M steps",
        "cost.usd_per_million_tokens": f"{money(answer['cost']['usd_per_million_tokens'])} for a million tokens",
        "cost.total_usd": f"{money(24 * answer['cost']['total_usd']['p50'] / answer['time']['wall_clock_hours']['p50'])} a day",
    }


QUESTIONS = {
    "throughput.mfu": "what mfu for llama 3 8b, 15T tokens on 512 h100",
    "throughput": "step time of llama 3 8b, 15T tokens on 512 h100",
    "memory": "does llama 3 8b on 15T tokens fit on 512 h100",
    "throughput.split": "pipeline bubble of gpt-3, 300B tokens on 1024 a100",
    "throughput.bound_by": "is llama 3 8b on 15T tokens network bound on 512 h100",
    "flops": "6nd of llama 3 8b, 15T tokens on 512 h100",
    "reliability": "goodput of llama 3 8b, 15T tokens on 512 h100",
    "reliability.checkpoint_interval_minutes": "best checkpoint interval for llama 3 8b, 15T tokens on 512 h100",
    "reliability.mttf_hours": "expected mtbf of llama 3 8b, 15T tokens on 512 h100",
    "energy.watts_per_accelerator": "kw per gpu of llama 3 8b, 15T tokens on 512 h100",
    "energy": "energy use of llama 3 8b, 15T tokens on 512 h100",
    "energy.tco2e": "carbon of llama 3 8b, 15T tokens on 512 h100",
    "summary.p80_usd": "p80 of llama 3 8b, 15T tokens on 512 h100",
    "throughput.tflops_per_accelerator": "tflops per gpu of llama 3 8b, 15T tokens on 512 h100",
    "time.accelerator_hours": "gpu hours of llama 3 8b, 15T tokens on 512 h100",
    "time.steps": "number of steps of llama 3 8b, 15T tokens on 512 h100",
    "cost.usd_per_million_tokens": "cost per million tokens of llama 3 8b, 15T tokens on 512 h100",
    "cost.total_usd": "cost per day of llama 3 8b, 15T tokens on 512 h100",
}


def test_each_figure_has_a_question() -> None:
    assert QUESTIONS.keys() == SENTENCES.keys()


@pytest.mark.parametrize(("field", "text"), QUESTIONS.items())
def test_the_answer_begins_with_the_figure_that_is_asked_for(shipped: AppContext, field: str, text: str) -> None:
    """And goes on with the cost and the time."""
    body = asked(shipped, text)
    said, whole = body["summary"]["text"], body["answer"]["summary"]["text"]
    assert said.endswith(f" {whole}")
    assert parts_of(body["answer"])[field] in said.removesuffix(whole)
    assert field in [note["field"] for note in body["assumptions"]]


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("what is the total flops of llama 3 8b, 15T tokens on 512 h100", ("FLOPs",)),
        ("how many kWh and gpu-hours for llama 3 8b, 15T tokens on 512 h100", ("MWh", "accelerator-hours")),
        ("tok/s/gpu, mfu and daily cost of llama 3 8b, 15T tokens on 512 h100", ("tokens/s", "MFU", "a day")),
        ("$/token, how much electricity and how many steps: llama 3 8b, 15T tokens on 512 h100", ("a million tokens", "MWh", "steps")),
    ],
)
def test_several_figures_are_said_in_the_order_of_the_question(shipped: AppContext, text: str, begins: tuple[str, ...]) -> None:
    said = asked(shipped, text)["summary"]["text"]
    places = [said.find(part) for part in begins]
    assert places == sorted(places)
    assert -1 < places[-1] < said.index("About $")


def test_no_figure_is_said_that_nobody_asks_for(shipped: AppContext) -> None:
    body = asked(shipped, "llama 3 8b, 15T tokens on 512 h100")
    assert body["summary"] == body["answer"]["summary"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("what mfu for llama 3 8b on 512 h100", 15 * 10**12),
        ("memory needed for lora on llama 3 8b with one h100", 10**7),
        ("tokens per second for a 7B on 64 h200", 140 * 10**9),
    ],
)
def test_tokens_that_a_figure_does_not_depend_on_are_taken_and_named(shipped: AppContext, text: str, tokens: int) -> None:
    """And no cost is said, which they would decide."""
    body = asked(shipped, text)
    assert body["understood"]["request"]["data"]["tokens"] == tokens
    noted = {note["field"]: note["source"] for note in body["assumptions"]}
    assert noted["data.tokens"].startswith("not said, and what is asked for does not depend on it")
    assert "$" not in body["summary"]["text"]


@pytest.mark.parametrize("text", ["energy use of llama 3 8b on 512 h100", "mfu and cost by june of a 7B on 64 h200"])
def test_tokens_are_asked_for_where_the_figure_depends_on_them(shipped: AppContext, text: str) -> None:
    """Or where the run has to end in time."""
    body = ask_body(shipped, EVERYBODY, text, with_answer=True)
    assert any("on how many tokens" in entry["question"] for entry in body["unclear"] if entry["blocking"])
