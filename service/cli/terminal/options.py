"""Options that several commands share, and options that set fields of a request."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from service.cli.terminal.places import PLACES, FieldOption

Decorator = Callable[[Callable[..., None]], Callable[..., None]]

FIELDS = f"{__name__}.fields"
"""Where the context of a command has the values of its fields, by path."""
PRICINGS = ("on_demand", "spot", "reserved_1y", "reserved_3y", "reserved")
IN_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
"""`-` is standard input; `read_file` reads both."""
OUT_FILE = click.Path(dir_okay=False, path_type=Path)


def field(name: str, path: str, text: str, *, read: Callable[[str], Any] | None = None, **attributes: Any) -> Decorator:
    """An option that sets the field at `path` of the request; `read` makes the field's value of the option's text."""

    def collect(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            context.meta.setdefault(FIELDS, {})[path] = read(value) if read else value
            context.meta.setdefault(PLACES, {})[path] = name

    return click.option(name, help=text, cls=FieldOption, path=path, callback=collect, expose_value=False, **attributes)


def combined(*options: Decorator) -> Decorator:
    """The options as one decorator, in this order."""
    return lambda command: functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


def parse_value(text: str) -> Any:
    """A value as JSON where it is JSON (1e12 is a number), else the text, which the schema reads ("2T")."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def split_list(text: str) -> list[str]:
    """Parts of a text between commas."""
    return [item.strip() for item in text.split(",")]


def json_option(text: str = "The whole answer, as over HTTP.") -> Decorator:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def settings_option(example: str, what: str = "Any other field") -> Decorator:
    """`--set`, which sets any field."""
    return click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help=f"{what}, such as {example}.")


def plot_option(text: str) -> Decorator:
    """`--plot`, which writes a chart."""
    return click.option("--plot", type=OUT_FILE, help=f"{text} to this SVG.")


def team_option(text: str) -> Decorator:
    """`--team`."""
    return click.option("--team", default="default", show_default=True, help=text)


def workload_fields(section: str = "") -> Decorator:
    """Options that describe the workload; `section` is the path of its part of the request, ending in a dot."""
    return combined(
        field("--model", f"{section}model.preset", "Preset, such as llama-2-7b (see `outlay models`)."),
        field("--params", f"{section}model.params", "Parameters, such as 7B, in place of a preset.", read=parse_value),
        field("--active-params", f"{section}model.active_params", "Active parameters of a mixture of experts.", read=parse_value),
        field("--tokens", f"{section}data.tokens", "Training tokens, such as 2T.", read=parse_value),
        field("--samples", f"{section}data.samples", "Training samples, for models counted by samples.", read=parse_value),
        field("--method", f"{section}training.method", "pretrain, continued_pretrain, full_finetune, lora, qlora, distill, dpo or rl."),
        field("--seq-len", f"{section}training.seq_len", "Tokens a sequence.", type=int),
        field("--batch-tokens", f"{section}training.global_batch_tokens", "Tokens a step, such as 4M.", read=parse_value),
        field("--precision", f"{section}training.precision", "bf16, fp16, fp8, …"),
        field("--mfu", f"{section}efficiency.mfu", "Model FLOPs utilisation you measured of a whole run; default: modelled.", type=float),
        field(
            "--measured-on",
            f"{section}efficiency.measured_on.count",
            "Accelerators on which steps of this model had that utilisation: it is carried over to the plan.",
            type=int,
        ),
    )


FILE = click.argument("file", type=IN_FILE)
OPTIONAL_FILE = click.argument("file", type=IN_FILE, required=False)
VERBOSE = click.option("-v", "--verbose", is_flag=True, help="Show everything behind the answer, with what was assumed.")
MACHINE_FIELDS = combined(
    field("--accelerator", "hardware.accelerator", "Such as H100 (see `outlay accelerators`)."),
    field("--count", "hardware.count", "Accelerators.", read=parse_value),
    field(
        "--usd-per-hour",
        "price.usd_per_accelerator_hour",
        "Your price an accelerator-hour; default: the cheapest known offer.",
        type=float,
    ),
)
SELLER_FIELDS = combined(
    field("--provider", "price.provider", "Take this provider's price."),
    field("--region", "price.region", "Take the price of this region."),
)
