"""What a program says of its model in service."""

from __future__ import annotations

from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice, Count, Number, Schema, Share, Text
from service.schemas.serving import FORMATS, LatencySchema, ServingHardwareSchema
from service.schemas.training.machine import MAX_SEQ_LEN, PriceFilterSchema


class ProgramServingRequestSchema(Schema):
    """The program's model in service: its cost is reported beside the budget and is no part of it."""

    tokens_per_day = Number(required=True, minimum=1.0, maximum=1e18, description="Tokens served a day, prompts and answers together")
    months = Number(required=True, minimum=0.01, maximum=1200.0, description="Time in service [months of 730 h]")
    prompt_tokens = Count(required=True, maximum=MAX_SEQ_LEN, suffixes=False, description="Tokens that a request comes with")
    output_tokens = Count(required=True, maximum=MAX_SEQ_LEN, suffixes=False, description="Tokens that are generated for it")
    cached_share = Share(description="Part of the prompts that is found in a cache and not computed again")
    latency = Part(LatencySchema, description="Longest latencies that are accepted; left out: any")
    formats = Items(Choice(FORMATS), min_items=1, max_items=len(FORMATS), description="How weights may be stored; left out: bf16")
    hardware = Part(ServingHardwareSchema, description="Accelerators that may be taken; left out: all")
    price = Part(PriceFilterSchema, description="Price that is stated, or which offers may be taken")
    utilisation = Number(minimum=0.001, maximum=1.0, description="Ratio of mean to full load of the replicas, so the room for peaks")
    run = Text(description="Run whose model is served, as tier/name; left out: the last of the last tier")
