"""What was read, in words that read as the same request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from service.domain.ask import Kind
from service.formats.ask.requests.texts import (
    MONTHS_PER_YEAR,
    count_text,
    days_text,
    field_texts,
    months_text,
    percent_text,
    usd_text,
    years_text,
)

Body = Mapping[str, Any]
PREFIX = "I read: "
METHOD_WORDS = {
    "pretrain": "pretraining",
    "continued_pretrain": "continued pretraining",
    "full_finetune": "full fine-tuning",
    "lora": "LoRA",
    "qlora": "QLoRA",
    "distill": "distillation",
    "dpo": "DPO",
    "rl": "RL",
}
PRICING_WORDS = {"on_demand": "on demand", "spot": "spot", "reserved_1y": "reserved for 1 year", "reserved_3y": "reserved for 3 years"}
TERMS = ("reserved_1y", "reserved_3y")
RECOMPUTATIONS = {
    "full": "full recomputation",
    "selective": "selective recomputation",
    "none": "no recomputation",
}
OPTIMIZERS = {"adamw_8bit": "8-bit AdamW"}
_SETTINGS = {"lora_rank": "LoRA rank", "zero_stage": "ZeRO stage", "micro_batch": "micro-batch"}
_OBJECTIVES = {"cost": "ordered by cost", "time": "ordered by time", "carbon": "ordered by carbon"}


AXES = ("tensor", "pipeline", "data", "context", "expert")
PREPOSITIONS = ("on ", "at ", "by ", "from ", "in ", "for ", "under ")


def echo(kind: Kind, request: Body, program: str = "") -> str:
    """The request in words, every number and name in full."""
    subject, *parts = _WRITERS[kind]({**request, "program": program})
    said = ", ".join(part for part in parts if part)
    if said.startswith(PREPOSITIONS):  # nothing is known that it is of: an estimate on 64 H100
        subject = subject.removesuffix(" of")
    return f"{PREFIX}{subject} {said}".rstrip(" ,") + "."


def _join(values: Any, text: Callable[[Any], str] = str) -> str:
    return " or ".join(text(value) for value in values or ())


def _model(request: Body) -> Iterator[str]:
    model = request.get("model", {})
    yield model.get("preset", "")
    yield _counted(model, "params", "parameters")
    yield _counted(model, "active_params", "active")


def _run(request: Body) -> Iterator[str]:
    """Model, data and training of a run."""
    data = request.get("data", {})
    yield from _model(request)
    yield _counted(data, "tokens", "tokens")
    yield _counted(data, "raw_tokens", "raw tokens")
    yield _counted(data, "samples", "samples")
    yield _counted(data, "epochs", "epochs")
    yield from _training(request.get("training", {}))
    yield _mfu(request)
    yield from _around(request)
    yield from field_texts(request)


def _mfu(request: Body) -> str:
    mfu = request.get("efficiency", {}).get("mfu")
    return "" if mfu is None else f"MFU {percent_text(mfu)}"


def _counted(section: Body, name: str, unit: str) -> str:
    value = section.get(name)
    return "" if value is None else f"{count_text(value)} {unit.removesuffix('s') if value == 1 else unit}"


def _training(training: Body) -> Iterator[str]:
    yield METHOD_WORDS.get(training.get("method", ""), "")
    teacher = training.get("teacher", {})
    yield f"teacher {_named(teacher)}" if teacher else ""
    yield f"reward model {_named(training['reward_model'])}" if "reward_model" in training else ""
    yield f"critic {_counted(training['rl'], 'critic_params', 'parameters')}" if "critic_params" in training.get("rl", {}) else ""
    yield f"targets {training['adapter_targets'].replace('_', ' ')}" if "adapter_targets" in training else ""
    yield f"in {training['precision']}" if "precision" in training else ""
    yield RECOMPUTATIONS.get(training.get("activation_recompute", ""), "")
    answer = training.get("response_tokens", training.get("rl", {}).get("response_tokens", {}).get("p50"))
    yield "" if answer is None else f"answers of {count_text(answer)} tokens"
    optimizer: str = training.get("optimizer", "")
    yield OPTIMIZERS.get(optimizer, optimizer)
    yield f"{training['states_dtype']} states" if "states_dtype" in training else ""
    yield f"sequence length {count_text(training['seq_len'])}" if "seq_len" in training else ""
    yield _counted(training, "global_batch_tokens", "tokens per batch")
    for name, text in _SETTINGS.items():
        yield f"{text} {training[name]}" if name in training else ""
    flash = training.get("flash_attention")
    yield "" if flash is None else "flash attention" if flash else "without flash attention"
    for axis in AXES:
        yield f"{axis} parallel {training['parallelism'][axis]}" if axis in training.get("parallelism", {}) else ""


def _named(model: Body) -> str:
    """A model by its name or size."""
    return str(model.get("preset") or _counted(model, "params", "parameters"))


def _machine(hardware: Body) -> str:
    name, count = hardware.get("accelerator"), hardware.get("count")
    if count is None:
        return f"on {name}" if name else ""
    return f"on {count_text(count)} {name or 'GPUs'}"


def _price(price: Body) -> Iterator[str]:
    usd = price.get("usd_per_accelerator_hour")
    yield "" if usd is None else f"at {usd_text(usd)} per hour"
    yield f"on {price['provider']}" if "provider" in price else ""
    yield f"in {price['region']}" if "region" in price else ""
    yield PRICING_WORDS.get(price.get("pricing", ""), "")


def _around(request: Body) -> Iterator[str]:
    """Work around a run, and time before it."""
    for name, share in request.get("overhead", {}).items():
        yield f"{name} overhead {percent_text(share)}".replace("reruns", "rerun")
    schedule = request.get("schedule", {})
    yield f"queue of {schedule['queue_hours']:.10g} hours" if "queue_hours" in schedule else ""
    weekly = schedule.get("maintenance_hours_per_week")
    yield "" if weekly is None else f"maintenance {weekly:.10g} hours per week"


def _dates(schedule: Body) -> Iterator[str]:
    yield f"from {schedule['start']}" if schedule.get("start") else ""
    yield f"by {schedule['deadline']}" if schedule.get("deadline") else ""


def _estimate(request: Body) -> Iterator[str]:
    yield "an estimate of"
    yield from _run(request)
    yield _machine(request.get("hardware", {}))
    yield from _price(request.get("price", {}))
    yield from _failures(request)
    energy = request.get("energy", {})
    yield f"carbon in {energy['region'].removeprefix('country:')}" if "region" in energy else ""
    yield f"PUE {energy['pue']:.10g}" if "pue" in energy else ""
    yield f"electricity {usd_text(energy['usd_per_kwh'])}" if "usd_per_kwh" in energy else ""
    yield from _dates(request.get("schedule", {}))
    yield "with levers" if request.get("levers") else ""


def _failures(request: Body) -> Iterator[str]:
    """How the machine fails, as it is said of one accelerator or of the whole job."""
    failures, count = request.get("failures", {}), request.get("hardware", {}).get("count", 1)
    hours = failures.get("mttf_hours_per_accelerator", 0)
    of_one = hours == float(f"{hours:.3g}")  # said of one accelerator: 50,000 hours
    every = f"MTTF {hours:,.10g} hours per accelerator" if of_one else f"a failure every {hours / count:.10g} hours"
    yield every if hours else ""
    for name, words in (
        ("restart_minutes", "restart takes"),
        ("detection_minutes", "detection takes"),
        ("checkpoint_interval_minutes", "checkpoint every"),
    ):
        yield f"{words} {failures[name]:.10g} minutes" if name in failures else ""


def _chance(request: Body) -> Iterator[str]:
    if request["program"]:
        yield f"the chance of {request['program']}"
        return
    yield "the chance of"
    parts = list(_estimate(request.get("base", {})))
    yield from parts[1:]
    if request.get("budget_usd") is not None:
        yield f"under {usd_text(request['budget_usd'])}"


def _weighed(workload: Body, variants: Sequence[Body]) -> Iterator[str]:
    """The run of a comparison, with the names of all variants in place of the first one's part."""
    names = [str(variant["name"]) for variant in variants]
    own: Body = variants[0]["workload"] if variants else {}
    whole = {name: {**workload.get(name, {}), **own.get(name, {})} for name in (*workload, *own)}
    ratio = _ratio(variants)
    for part in _run(whole):
        if ratio and part == _counted(whole.get("data", {}), "tokens", "tokens"):
            yield f"{ratio:.10g} tokens per parameter"
            continue
        yield part.removesuffix(names[0]) + _join(names) if names and part in (names[0], f"in {names[0]}") else part


def _ratio(variants: Sequence[Body]) -> float:
    """Tokens of each parameter, where sizes are weighed that have as many; else 0."""
    runs = [variant["workload"] for variant in variants]
    sized = [run for run in runs if "params" in run.get("model", {}) and "tokens" in run.get("data", {})]
    ratios = {run["data"]["tokens"] / run["model"]["params"] for run in sized}
    return ratios.pop() if len(sized) == len(runs) and len(ratios) == 1 else 0


def _compare(request: Body) -> Iterator[str]:
    yield "a comparison of"
    yield from _weighed(request.get("workload", {}), request.get("variants", ()))
    candidates, constraints = request.get("candidates", {}), request.get("constraints", {})
    counts, names = _join(candidates.get("counts"), count_text), _join(candidates.get("accelerators"))
    machine: str = f"{counts} {names or 'GPUs'}" if counts else names
    yield f"on {machine}" if machine else ""
    pairs = _join(candidates.get("machines"), lambda pair: f"{count_text(pair['count'])} {pair['accelerator']}")
    yield f"on {pairs}" if pairs else ""
    for own in request.get("on_prem", ()):
        yield f"against our own {count_text(own['count'])} {own['accelerator']}"
    yield _join(candidates.get("providers"))
    yield _join(candidates.get("regions"))
    yield _join(candidates.get("pricing"), lambda pricing: PRICING_WORDS[pricing])
    yield _join(constraints.get("jurisdictions"))
    yield from _dates(constraints)
    yield f"within {days_text(constraints['max_wall_clock_days'])}" if "max_wall_clock_days" in constraints else ""
    yield f"{percent_text(constraints['min_deadline_probability'])} sure" if "min_deadline_probability" in constraints else ""
    yield f"under {usd_text(constraints['max_cost_usd'])}" if "max_cost_usd" in constraints else ""
    yield f"{constraints['max_tco2e']:.10g} tCO2e" if "max_tco2e" in constraints else ""
    yield "live capacity" if constraints.get("require_available") else ""
    yield _OBJECTIVES.get(request.get("objective", ""), "")
    for own in request.get("on_prem", ()):
        yield from _power(own)
        yield from _upkeep(own)


def _power(own: Mapping[str, Any]) -> Iterator[str]:
    """What owned accelerators draw, and the price of it."""
    yield f"{own['kw_per_accelerator']:.10g} kW" if "kw_per_accelerator" in own else ""
    yield f"PUE {own['pue']:.10g}" if "pue" in own else ""
    yield f"electricity {usd_text(own['usd_per_kwh'])}" if "usd_per_kwh" in own else ""


def _optimal(request: Body) -> Iterator[str]:
    budget = request.get("budget", {})
    yield "the most tokens for" if "model" in request else "the optimal model"
    yield from _model(request)
    yield f"under {usd_text(budget['usd'])}" if "usd" in budget else ""
    yield f"for {budget['flops']:.12g} FLOPs".replace("+", "") if "flops" in budget else ""
    hours = _counted(budget, "accelerator_hours", "GPU-hours")
    yield f"for {hours}" if hours else ""
    yield f"within {days_text(budget['days'])}" if "days" in budget else ""
    yield f"by {budget['deadline']}" if "deadline" in budget else ""
    yield _machine(request.get("hardware", {}))
    yield from _training(request.get("training", {}))
    yield _mfu(request)
    yield from _price(request.get("price", {}))
    yield from _around(request)
    yield from _dates(request.get("schedule", {}))
    yield _counted(request, "lifetime_inference_tokens", "tokens served")
    yield _counted(request, "max_unique_tokens", "unique tokens")
    yield f"{request['law']} law" if "law" in request else ""
    yield from field_texts(request)


def _buy_or_rent(request: Body) -> Iterator[str]:
    demand, rent = request.get("demand", {}), request.get("rent", {})
    reserved = not request.get("own") and len(rent.get("pricing", ())) > 1
    quoted = [str(quote["pricing"]) for quote in rent.get("quotes", ())]
    leased = not request.get("own") and any(pricing.startswith("reserved") for pricing in quoted)
    yield "whether to reserve" if reserved else "whether to lease" if leased else "whether to buy or rent"
    yield _machine(demand).removeprefix("on ")
    for own in request.get("own", ()):
        yield f"{usd_text(own['capex_usd_per_accelerator'])} each" if "capex_usd_per_accelerator" in own else ""
        yield f"residual value {percent_text(own['residual_share'])}" if "residual_share" in own else ""
        yield from _power(own)
        yield from _upkeep(own)
    yield f"from {demand['start']}" if "start" in demand else ""
    yield f"for {years_text(demand['years'])}" if "years" in demand else ""
    yield f"utilisation {percent_text(demand['utilisation'])}" if "utilisation" in demand else ""
    yield f"growth {percent_text(demand['growth_per_year'])}" if "growth_per_year" in demand else ""
    quotes = rent.get("quotes", ())
    terms = rent.get("pricing")  # of several each price has its own, said before it
    yield _join(terms or (), lambda pricing: PRICING_WORDS[pricing])
    several = len(quotes) > 1 and not all(quote["pricing"] == quotes[0]["pricing"] != "reserved" for quote in quotes)
    shorter = [
        quote
        for quote in quotes
        if len(quotes) == 1 and quote.get("term_months", 0) not in (0, round(demand.get("years", 0) * MONTHS_PER_YEAR))
    ]
    yield ", ".join(_quote_text(quote, with_pricing=bool(terms) or several, with_term=several) for quote in quotes if quote not in shorter)
    yield from (f"{_quote_text(quote, with_pricing=False, with_term=False)} for {quote['term_months']} months" for quote in shorter)
    alone = quotes if not terms and not several else ()
    yield from (f"{percent_text(quote['upfront_share'])} upfront" for quote in alone if "upfront_share" in quote)
    yield _join(
        dict.fromkeys(quote["pricing"] for quote in alone if quote not in shorter), lambda pricing: PRICING_WORDS.get(pricing, pricing)
    )
    yield from (f"valid until {quote['expires']}" for quote in alone if "expires" in quote)
    yield _join(rent.get("providers"))
    yield _join(rent.get("regions"))
    yield f"cost of capital {percent_text(request['cost_of_capital'])}" if "cost_of_capital" in request else ""
    change = request.get("list_price_change_per_year")
    yield "" if change is None else f"list prices {'fall' if change < 0 else 'rise'} by {percent_text(abs(change))} per year"


def _quote_text(quote: Mapping[str, Any], *, with_pricing: bool, with_term: bool) -> str:
    """Who asks how much an hour, and for what kind of pricing and term where that is not said of all of them."""
    term = f"reserved for {quote['term_months']} months" if with_term and "term_months" in quote else quote["pricing"]
    pricing = PRICING_WORDS.get(quote["pricing"], term) if with_pricing else ""
    upfront = f", {percent_text(quote['upfront_share'])} upfront" if with_pricing and "upfront_share" in quote else ""
    expires = f", valid until {quote['expires']}" if with_pricing and "expires" in quote else ""
    text = f"{_seller(quote)} {pricing} at {usd_text(quote['usd_per_accelerator_hour'])} per hour{upfront}{expires}"
    return " ".join(text.split())


def _seller(quote: Body) -> str:
    """Who states a price; empty where that is not said."""
    name = str(quote["name"])
    return "" if name.startswith("quote ") else name


def _upkeep(own: Body) -> Iterator[str]:
    """What owning costs by the year and in tax, and when it begins."""
    yield f"{percent_text(own['opex_share_per_year'])} support per year" if "opex_share_per_year" in own else ""
    yield f"tax {percent_text(own['tax_rate'])}" if "tax_rate" in own else ""
    yield f"depreciation over {years_text(own['depreciation_years'])}" if "depreciation_years" in own else ""
    yield f"lead time {months_text(own['lead_time_months'])}" if "lead_time_months" in own else ""


def _offers(request: Body) -> Iterator[str]:
    pricings = request["pricing"].split(",") if "pricing" in request else ()
    request = {name: value.replace(",", " or ") if isinstance(value, str) else value for name, value in request.items()}
    term = "count" in request and "hours" not in request and any(pricing in TERMS for pricing in pricings)
    yield f"the price {'in $/hr ' if term else ''}of {_machine(request).removeprefix('on ') or 'all accelerators'}"
    yield f"for {request['hours']:.10g} hours" if "hours" in request else ""
    yield f"at {usd_text(request['usd_per_accelerator_hour'])} per hour" if "usd_per_accelerator_hour" in request else ""
    yield from _price({name: value for name, value in request.items() if name in ("provider", "region")})
    yield _join(pricings, lambda pricing: PRICING_WORDS.get(pricing, pricing))
    yield f"in {request['jurisdiction']}" if "jurisdiction" in request else ""
    limit = request.get("max_usd_per_accelerator_hour")
    yield "" if limit is None else f"under {usd_text(limit)} per hour"


def _status(request: Body) -> Iterator[str]:
    yield f"the status of {request['program'] or 'a program'}"
    yield f"as of {request['as_of'][:10]}" if "as_of" in request else ""


def _help(request: Body) -> Iterator[str]:
    del request
    yield "help"


_WRITERS: Mapping[Kind, Callable[[Body], Iterator[str]]] = {
    "estimate": _estimate,
    "compare": _compare,
    "optimal": _optimal,
    "buy_or_rent": _buy_or_rent,
    "chance": _chance,
    "price": _offers,
    "status": _status,
    "help": _help,
}
