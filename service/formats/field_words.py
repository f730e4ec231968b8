"""Fields of the API in plain words: `training.seq_len` is "training: sequence length"."""

from __future__ import annotations

import re
from collections.abc import Mapping

_BEFORE_VOWEL = re.compile(r"\ba (?=[aeio]|hour)")
NAMES: Mapping[str, str] = {
    "accelerator_hours": "accelerator-hours",
    "accelerators_per_node": "accelerators a node",
    "base": "model before the last training",
    "capex_usd_per_accelerator": "hardware, USD an accelerator",
    "colo_usd_per_kw_month": "colocation, USD a kW and month",
    "embodied_gco2e_per_accelerator_hour": "emissions of making the hardware, g CO2e an accelerator-hour",
    "flops": "FLOPs",
    "grid_gco2_per_kwh": "emissions of the grid, g CO2e a kWh",
    "growth_per_year": "growth a year",
    "hf_config": "Hugging Face configuration",
    "inter_node_gbps": "network of a node, Gbit/s",
    "kw_per_accelerator": "power of an accelerator, kW",
    "lead_time_months": "lead time, months",
    "lease_usd_per_month": "lease, USD a month",
    "licence_usd_per_accelerator_year": "licences, USD an accelerator and year",
    "list_price_change_per_year": "change of list prices a year",
    "maintenance_share_per_year": "maintenance a year, of the capital",
    "mfu": "MFU",
    "mttf_hours_per_accelerator": "mean time to failure, accelerator-hours",
    "on_prem": "own hardware",
    "opex_share_per_year": "operation a year, of the capital",
    "optimize": "optimisation",
    "own": "own hardware",
    "preemptions_per_node_hour": "preemptions a node-hour",
    "price_decline_per_year": "loss of value a year",
    "pue": "power usage effectiveness",
    "residual_share": "resale, of the capital",
    "run_over_step_speed": "speed of the run over that of its steps",
    "staff_fte": "staff, full-time equivalents",
    "usd_per_accelerator_hour": "USD an accelerator-hour",
    "usd_per_fte_year": "staff, USD each a year",
    "usd_per_hour": "USD an hour",
    "usd_per_kwh": "energy, USD a kWh",
    "usd_per_tb_month": "USD a TB and month",
    "watts_per_accelerator": "power of an accelerator, W",
}
"""Names whose parts say too little."""
PARTS: Mapping[str, str] = {
    "capex": "capital",
    "colo": "colocation",
    "conv": "convolution",
    "cpi": "CPI",
    "dim": "width",
    "ffn": "feed-forward",
    "fte": "full-time equivalents",
    "gb": "GB",
    "gco2e": "g CO2e",
    "hf": "Hugging Face",
    "hfu": "HFU",
    "kv": "key and value",
    "kw": "kW",
    "kwh": "kWh",
    "len": "length",
    "lora": "LoRA",
    "max": "most",
    "mfu": "MFU",
    "min": "least",
    "moe": "mixture of experts",
    "mwh": "MWh",
    "npv": "NPV",
    "oncall": "on-call",
    "params": "parameters",
    "per": "a",
    "prem": "premises",
    "q": "query",
    "qk": "query and key",
    "rl": "reinforcement learning",
    "rope": "positioned",
    "nope": "unpositioned",
    "s": "second",
    "seq": "sequence",
    "ssm": "state-space",
    "tb": "TB",
    "tco2e": "t CO2e",
    "tflops": "TFLOP/s",
    "usd": "USD",
    "v": "value",
    "vocab": "vocabulary",
    "w": "W",
    "zero": "ZeRO",
}
"""Parts of names that are no words."""


UNITS: Mapping[str, str] = {
    "days": "days",
    "hours": "hours",
    "minutes": "minutes",
    "months": "months",
    "s": "seconds",
    "tb": "TB",
    "usd": "USD",
}
"""Units at a name's end, which a comma sets apart."""
CHOICES: Mapping[str, str] = {"reserved_1y": "reserved for 1 year", "reserved_3y": "reserved for 3 years"}
"""Names of choices whose parts say too little."""


def field_words(name: str) -> str:
    """A field's own name in words, its unit after a comma."""
    if name in NAMES:
        return NAMES[name]
    *above, last = name.split("_")
    unit = UNITS.get(last) if above and above[-1] != "per" else None
    parts = above if unit else [*above, last]
    text = _BEFORE_VOWEL.sub("an ", " ".join(PARTS.get(part, part) for part in parts if part))
    return f"{text}, {unit}" if unit else text


def choice_words(name: str) -> str:
    """The name of a choice in words, such as a kind of pricing: `reserved_3y` is "reserved for 3 years"."""
    return CHOICES.get(name, name.replace("_", " "))


def path_words(path: str) -> str:
    """A field's dotted path in words: what it is a part of, then itself. A place in a list is counted from one."""
    words: list[str] = []
    for part in path.split("."):
        if part.isdecimal() and words:
            words[-1] = f"{words[-1]} {int(part) + 1}"
        else:
            words.append(field_words(part))
    *above, last = words
    return f"{', '.join(above)}: {last}" if above else last
