"""Sections that several requests have: model, training, hardware, price, schedule, budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from service.formats.ask.grammar.asking.intents import MONEY
from service.formats.ask.grammar.attributes import MAINTENANCE, OVERHEAD, OVERHEADS, QUEUE
from service.formats.ask.grammar.keyed import PER_NODE
from service.formats.ask.grammar.machines.nodes import NODES, RACKS, size_of
from service.formats.ask.grammar.machines.priced_machines import FOR_SEVERAL, NODES_OF
from service.formats.ask.grammar.money.reservations import RESERVED_FOR
from service.formats.ask.grammar.quantities import HELD
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.names import SAME_SIZE
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.choices import number_choices
from service.formats.ask.requests.draft import WORDS, Draft, Request, stated
from service.formats.ask.requests.echo import PRICING_WORDS
from service.formats.ask.requests.fields import merged, stated_fields

HOURS_PER_DAY = 24
MOST_OF_ONE_USD, OF_ONE = 20, "no accelerator costs as much: what does an hour of one cost?"
MOST_BESIDE_NODES_USD, OF_ONE_OR_NODE = 6, "is it the price of one accelerator, or of a node?"
"""Where nodes are counted, a higher price of an hour may be that of a node [USD per hour]."""
AXES = {"tensor": "tensor", "pipeline": "pipeline", "data_ranks": "data", "context_ranks": "context", "expert": "expert"}
"""Ranks of a layout, by the slots that say them."""
OF_REPLICA = ("tensor", "pipeline", "context_ranks")
"""Ranks that one copy of the model takes."""
OF_ACCELERATORS = ("tensor", "pipeline", "data_ranks")
RESERVED = ("reserved_1y", "reserved_3y")
WHICH_MODEL = "which model: a preset such as llama-3-8b, or a size such as 7B?"
EXAMPLE_MACHINES = "256 H100"
WHICH_MACHINE = "on which accelerators, such as {}? (`compare …` weighs all there are)"
OTHER_TERMS = "no prices are listed for a term of that length: those for one year and for three stand for it"


def model_section(draft: Draft) -> Request:
    """The model, by name or size."""
    preset = draft.one("model", "model.preset")
    params, active = draft.one("params", "model.params"), draft.one("active_params", "model.active_params")
    if preset is not None and params is not None:
        draft.doubts.append(
            Doubt(f"{preset.value}, {params:,} parameters", (preset.value, f"{params:,} parameters"), "which model of the two?")
        )
        return {}
    if preset is not None and active is not None and abs(active - preset.active_params) <= SAME_SIZE * active:
        draft.note("model.preset", preset.value, f"{active:,} active parameters are its own")
        active = None
    shape = stated_fields(draft, "model")
    if preset is not None and shape:
        text = ", ".join(f"{name} {value}" for name, value in shape.items())
        draft.doubts.append(Doubt(text, (), f"{preset.value} has a shape of its own: leave out the name, or the shape"))
        return {}
    named = draft.slots.has("model", "params") or "layers" in shape
    if not named and not any(doubt.question.startswith("which model") for doubt in draft.doubts):
        draft.missing(WHICH_MODEL)
    return stated(preset=preset and preset.value, params=params, active_params=active, **shape)


def training_section(draft: Draft) -> Request:
    """How it is trained."""
    batch = draft.one("batch_tokens", "training.global_batch_tokens") or _accumulated_batch(draft)
    named = stated_fields(draft, "training")
    section = stated(
        method=_method(draft),
        seq_len=draft.one("seq_len", "training.seq_len"),
        global_batch_tokens=batch,
        response_tokens=draft.one("response_tokens", "training.response_tokens"),
        precision=draft.one("precision", "training.precision"),
        activation_recompute=draft.one("activation_recompute", "training.activation_recompute"),
        optimizer=draft.one("optimizer", "training.optimizer"),
        lora_rank=draft.one("lora_rank", "training.lora_rank"),
        adapter_targets=draft.one("adapter_targets", "training.adapter_targets"),
        teacher=_teacher(draft),
        reward_model=_reward_model(draft),
        rl=stated(critic_params=_critic(draft)),
        zero_stage=draft.one("zero_stage", "training.zero_stage"),
        states_dtype=draft.one("states_dtype", "training.states_dtype"),
        micro_batch=draft.one("micro_batch", "training.micro_batch"),
        parallelism=stated(**{axis: draft.one(slot, f"training.parallelism.{axis}") for slot, axis in AXES.items()}),
        flash_attention=draft.one("flash_attention", "training.flash_attention"),
    )
    return _with_median(merged(section, named))


def _with_median(section: Request) -> Request:
    """The section with the length of an answer as the median, where the longest or the 90th percentile is said besides."""
    lengths = section.get("rl", {}).get("response_tokens")
    if lengths is not None and "response_tokens" in section:
        section["rl"]["response_tokens"] = {"p50": section.pop("response_tokens"), **lengths}
    return section


def _accumulated_batch(draft: Draft) -> int | None:
    """Micro-batches of all data ranks, accumulated for some steps; where a part of it is not known the steps are asked back."""
    said = [draft.slots.peek(name) for name in ("accumulation_steps", "micro_batch", "seq_len")]
    sizes = [value for value in said if isinstance(value, int)]
    counts = {slot.value for slot in draft.slots.all if slot.name == "count" and isinstance(slot.value, int)}
    ranks = math.prod(int(rank) for axis in OF_REPLICA if isinstance(rank := draft.slots.peek(axis), int))
    if len(sizes) < len(said) or len(counts) != 1 or draft.slots.has("batch_tokens"):
        return None
    count = counts.pop()
    if count % ranks:
        return None
    draft.slots.taken.add("accumulation_steps")
    steps, micro, length = sizes
    tokens = steps * micro * (count // ranks) * length
    note = f"{steps:,} steps of micro-batches of {micro:,}, {count // ranks:,} data ranks, {length:,} tokens a sequence"
    draft.note("training.global_batch_tokens", tokens, note)
    return tokens


def _teacher(draft: Draft) -> Request:
    """The model that another one is distilled from."""
    preset = draft.one("teacher", "training.teacher.preset")
    return stated(preset=preset and preset.value, params=draft.one("teacher_params", "training.teacher.params"))


def _reward_model(draft: Draft) -> Request:
    """The model that scores answers."""
    preset = draft.one("reward_preset", "training.reward_model.preset")
    return stated(preset=preset and preset.value, params=draft.one("reward_params", "training.reward_model.params"))


def _critic(draft: Draft) -> Any:
    """Parameters of the critic, of a named model its own."""
    preset, params = (draft.one(name, "training.rl.critic_params") for name in ("critic_preset", "critic_params"))
    return params if preset is None else round(preset.params)


def _method(draft: Draft) -> str | None:
    """The method; fine-tuning alone is of all weights, beside adapters, their rank or preferences it adds nothing."""
    method, tuned = draft.one("method", "training.method"), draft.slots.values("tuning")
    if method is None and tuned and not draft.slots.has("method", "lora_rank", "adapter_targets"):
        draft.note("training.method", "full_finetune", "fine-tuning read as of all weights; say lora or qlora for adapters")
        return str(tuned[0])
    if method is None and draft.slots.has("lora_rank", "adapter_targets"):
        draft.note("training.method", "lora", "a rank, or layers, are those of LoRA's adapters; say qlora for quantised weights")
        return "lora"
    return None if method is None else str(method)


def accelerator_names(draft: Draft, path: str) -> list[str]:
    """Names of the accelerators as they were written, with what they could mean too in the notes."""
    found: list[str] = []
    for slot in draft.slots.each("accelerator"):
        name = slot.value
        assert isinstance(name, Name)
        if name.value in found:
            continue
        if slot.others:
            draft.note(path, name.value, "; ".join(part for part in (slot.note, f"could also be {', '.join(slot.others)}") if part))
        found.append(name.value)
    return found


def accelerator_counts(draft: Draft, path: str) -> list[int]:
    """Numbers of accelerators; nodes count as many as the one accelerator's usual node has."""
    counts = [int(value) for value in draft.many("count", path)]
    machines = {slot.value for slot in draft.slots.all if slot.name == "accelerator" and isinstance(slot.value, Name)}
    per_node = draft.slots.peek(PER_NODE) or draft.slots.peek("machine_of")
    for slot in (*draft.slots.each(NODES), *draft.slots.each(RACKS)):
        number, what = slot.value, slot.name
        name = next(iter(machines)) if len(machines) == 1 else None
        own = per_node if isinstance(per_node, int) and what == NODES else 0
        size = own or (size_of(name, what) if name else 0)
        if size and isinstance(number, int):
            usual = "" if own or name is None else f", as is usual for {name.value}"
            draft.note(path, number * size, f"{number:,} {what} of {size}{usual}")
            counts.append(number * size)
        else:
            draft.doubts.append(Doubt(f"{number:,} {what}", (), "of how many accelerators, and which?"))
    return list(dict.fromkeys(counts))


def hardware_section(draft: Draft, *, required: bool = True, choices: Sequence[str] = ()) -> Request:
    """The accelerator and their number; several are asked back, and `choices` are offered where none is said."""
    names = accelerator_names(draft, "hardware.accelerator")
    counts = accelerator_counts(draft, "hardware.count") or _count_of_ranks(draft)
    for values, what in ((names, "accelerator"), (counts, "number of accelerators")):
        if len(values) > 1:
            shown = tuple(str(value) for value in values)
            draft.doubts.append(Doubt(", ".join(shown), shown, f"which {what}: one of these?"))
    if required and not names and any(doubt.question.startswith(("which card", "which slice")) for doubt in draft.doubts):
        return stated(count=counts[0] if len(counts) == 1 else None)
    if required and not names:
        draft.missing(WHICH_MACHINE.format((*choices, EXAMPLE_MACHINES)[0]), choices)
    elif required and not counts and not any("how many" in doubt.question for doubt in draft.doubts):
        draft.missing(f"on how many {names[0]}?", number_choices(draft, names[0]))
    machine = stated(accelerator=names[0] if len(names) == 1 else None, count=counts[0] if len(counts) == 1 else None)
    return machine | stated_fields(draft, "hardware")


def _count_of_ranks(draft: Draft) -> list[int]:
    """Accelerators as the product of tensor, pipeline and data ranks, and those of context, where they are said."""
    ranks = [draft.slots.peek(axis) for axis in (*OF_ACCELERATORS, "context_ranks")]
    sizes = [int(rank) for rank in ranks if isinstance(rank, int)]
    if any(rank is None for rank in ranks[:-1]) or len(sizes) < len(OF_ACCELERATORS):
        return []
    draft.note("hardware.count", math.prod(sizes), "the product of its ranks")
    return [math.prod(sizes)]


def machine_size(draft: Draft) -> int:
    """Accelerators of a machine, where machines are counted; else 0."""
    said = draft.one("machine_of", "own.0.capex_usd_per_accelerator")
    if said is not None:
        return int(said)
    stated_sizes = [found.group(1) for slot in draft.slots.all if slot.name == "count" and (found := NODES_OF.search(slot.note))]
    if stated_sizes:
        return int(stated_sizes[0])
    instances = [slot.value for slot in draft.slots.all if slot.name == "accelerator" and slot.note.startswith(HELD)]
    if instances and isinstance(instances[0], Name) and instances[0].per_node:
        return instances[0].per_node
    counted = next((what for what in (NODES, RACKS) if draft.slots.peek(what) is not None), "")
    usual = [size_of(slot.value, counted) for slot in draft.slots.all if slot.name == "accelerator" and isinstance(slot.value, Name)]
    return usual[0] if usual and counted else 0


def ask_of_one(draft: Draft, usd: float | None) -> None:
    """A price that no accelerator has is asked back."""
    if usd is not None and usd > MOST_OF_ONE_USD:
        draft.doubts.append(Doubt(f"${usd:,}", (), OF_ONE))


def price_section(draft: Draft) -> Request:
    """A stated price, or which offers may be taken."""
    usd = draft.one("price_per_hour", "price.usd_per_accelerator_hour")
    divided = any(slot.name == "price_per_hour" and FOR_SEVERAL in slot.note for slot in draft.slots.all)
    machine = 0 if divided else machine_size(draft)
    if usd is not None and machine and usd > MOST_BESIDE_NODES_USD:
        texts = (f"${usd / machine:,.4g} an hour", f"${usd:,} an hour")
        draft.doubts.append(Doubt(f"${usd:,}", texts, OF_ONE_OR_NODE))
    elif not divided:
        ask_of_one(draft, usd)
    provider, region = draft.one("provider", "price.provider"), draft.one("region", "price.region")
    return stated(
        usd_per_accelerator_hour=usd,
        provider=provider and provider.value,
        region=region and region.value,
        pricing=one_pricing(draft, "price.pricing", "on_demand"),
    )


def one_pricing(draft: Draft, path: str, default: str = "") -> str | None:
    """One kind of pricing; `reserved` alone is asked back, and so is what is left out where the default is, or there is none."""
    excluded = _excluded_pricings(draft)
    if not draft.slots.has("pricing") and excluded:
        rest = _without(excluded)
        words, left_out = tuple(PRICING_WORDS[pricing] for pricing in rest), ", ".join(WORDS.get(value, value) for value in excluded)
        if default in rest:
            draft.note(path, default, f"not {left_out}: {PRICING_WORDS[default]}, as is usual")
            return default
        draft.doubts.append(Doubt(f"not {left_out}", words, "which pricing: one of these?"))
        return None
    pricing = draft.one("pricing", path)
    contract = any(slot.note == RESERVED_FOR for slot in draft.slots.all if slot.name == "pricing")
    if pricing == "reserved" and not (contract and draft.slots.has("price_per_hour")):
        draft.doubts.append(Doubt("reserved", ("reserved 1 year", "reserved 3 years"), "reserved for one year or for three?"))
    return None if pricing in (None, "reserved") else str(pricing)


def many_pricings(draft: Draft, path: str) -> list[str]:
    """Kinds of pricing; `reserved` alone is of every term, and of what is left out all others."""
    excluded, found = _excluded_pricings(draft), [str(value) for value in draft.many("pricing", path)]
    if "reserved" in found:
        termed = any(slot.value == "reserved" and slot.note == RESERVED_FOR for slot in draft.slots.all if slot.name == "pricing")
        draft.note(path, list(RESERVED), OTHER_TERMS if termed else "reserved read as for one year and for three")
        found = list(dict.fromkeys(each for value in found for each in (RESERVED if value == "reserved" else (value,))))
    if excluded and not found:
        draft.note(path, _without(excluded), f"all but {', '.join(excluded)}")
        return _without(excluded)
    return found


def _excluded_pricings(draft: Draft) -> list[str]:
    """Kinds of pricing that are left out; one that is asked for too is a contradiction."""
    excluded = [str(value) for value in draft.slots.values("without_pricing")]
    wanted = {slot.value for slot in draft.slots.all if slot.name == "pricing"}
    if wanted & set(excluded):
        draft.doubts.append(Doubt(", ".join(excluded), (), "is it wanted, or left out?"))
    return excluded


def _without(excluded: Iterable[str]) -> list[str]:
    left_out = {each for value in excluded for each in (RESERVED if value == "reserved" else (value,))}
    return [pricing for pricing in PRICING_WORDS if pricing not in left_out]


def queue_hours(draft: Draft) -> float | None:
    """Time in the queue before the run [h]."""
    queue = draft.one(QUEUE, "schedule.queue_hours")
    return None if queue is None else round(queue.days * HOURS_PER_DAY, 2)


def waits(draft: Draft) -> Request:
    """Times in which the machine does not work on the run: its queue, and maintenance."""
    return stated(queue_hours=queue_hours(draft), maintenance_hours_per_week=draft.one(MAINTENANCE, f"schedule.{MAINTENANCE}"))


def overhead_section(draft: Draft) -> Request:
    """Work around the run, as parts of its cost; one of no kind counts as debugging, since all of them count alike."""
    shares = {name.removeprefix("overhead_"): draft.one(name, name.replace("_", ".")) for name in OVERHEADS}
    whole = draft.one(OVERHEAD, "overhead")
    if whole is not None and shares["debugging"] is None:
        draft.note("overhead.debugging", whole, "an overhead of no kind: evaluation, debugging and reruns count alike")
        shares["debugging"] = whole
    elif whole is not None:
        draft.doubts.append(Doubt(f"{whole * 100:g}% overhead", (), "there is one of debugging too: which of the two holds?"))
    return stated(**shares)


def schedule_section(draft: Draft) -> Request:
    """Start, deadline and queue; a limit of days counts from the start, or from today."""
    start, deadline = draft.one("start", "schedule.start"), draft.one("deadline", "schedule.deadline")
    limit = draft.one("limit", "schedule.deadline")
    if limit is not None and deadline is None:
        deadline = limit.after(start or draft.today)
        draft.note("schedule.deadline", deadline, f"{float(limit.value):g} {limit.unit} from {'the start' if start else 'today'}")
    elif limit is not None:
        draft.doubts.append(Doubt(f"{float(limit.value):g} {limit.unit}", (), "there is a deadline too: which of the two holds?"))
    check_future(draft, start, deadline)
    if deadline is not None and start is None:
        start = draft.today
        draft.note("schedule.start", start, "no start is said: today")
    return stated(start=start and start.isoformat(), deadline=deadline and deadline.isoformat(), **waits(draft))


def check_future(draft: Draft, start: date | None, deadline: date | None) -> None:
    """Ask for a deadline after the start and today."""
    first = start or draft.today
    if deadline is not None and deadline < first:
        what = f"the start, {start.isoformat()}" if start else f"today, {draft.today.isoformat()}"
        draft.doubts.append(Doubt(deadline.isoformat(), (), f"the deadline lies before {what}: which day is meant?"))


def dollars(draft: Draft, path: str) -> Any:
    """Dollars that may be spent, however they are said."""
    said = [slot for name in MONEY for slot in draft.slots.each(name)]
    values = list(dict.fromkeys(slot.value for slot in said))
    if len(values) > 1:
        shown = tuple(f"${value:,}" for value in values)
        draft.doubts.append(Doubt(", ".join(shown), shown, "which of these is the budget?"))
        return None
    if values and (said[0].name != "budget_usd" or said[0].note):
        draft.note(path, values[0], said[0].note or "read as the budget")
    return values[0] if values else None
