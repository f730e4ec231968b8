"""What is rented: whole instances, capacity that is taken back, reservations by whole terms; and variants of what is run."""

from __future__ import annotations

from typing import Any

import pytest

from providers.offer import OfferTerms
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.presets.training.spot import spot_capacity
from service.usecases.comparison.compare import Comparison
from service.usecases.training.estimate import estimate
from tests.unit.usecases.comparison.comparing import A100, WORKLOAD, by_id, compared, offer, selling

ONE_YEAR = 8760.0


def market(settings: Settings, *offers: Any) -> AppContext:
    return selling(build_context(settings), offers)


def only(found: Comparison) -> Option:
    (option,) = found.options
    return option


def p50(option: Option) -> tuple[float, float]:
    """Hours and dollars."""
    assert option.time is not None
    assert option.cost_usd is not None
    return option.time.wall_clock_hours.p50, option.cost_usd.p50


def shown_network(option: Option) -> float | None:
    """The network between nodes that the option's throughput shows [Gbit/s]."""
    assert option.throughput is not None
    return option.throughput.inter_node_gbps


def rent(option: Option) -> float:
    """Dollars without storage, which is the same everywhere."""
    return p50(option)[1]


def test_each_instance_type_is_timed_in_its_own_network(settings: Settings) -> None:
    """Of two Azure sizes with the same accelerators the one without InfiniBand is slower and dearer at its price; alone both are one."""
    joined = offer("3.00", "azure", "eastus", instance_type="Standard_ND96isr_H100_v5")
    lonely = offer("3.00", "azure", "westus", instance_type="Standard_ND96is_noIB_H100_v5")
    found = compared(market(settings, joined, lonely), {"counts": [8, 64]})
    by_kind = {(option.offer.region, option.count): option for option in found.options}
    assert {kind: shown_network(option) for kind, option in by_kind.items()} == {
        ("eastus", 8): None, ("westus", 8): None, ("eastus", 64): 3200, ("westus", 64): 80,
    }  # fmt: skip
    assert p50(by_kind["eastus", 8]) == p50(by_kind["westus", 8])
    fast, slow = (p50(by_kind[region, 64]) for region in ("eastus", "westus"))
    assert slow[0] > fast[0]
    assert slow[1] > fast[1]


def test_an_estimate_of_an_instance_type_is_the_option_of_it(settings: Settings) -> None:
    """In whatever network, interruptible or not."""
    kinds = {"eastus": "Standard_ND96isr_H100_v5", "westus": "Standard_ND96is_noIB_H100_v5", "nowhere": "unheard of"}
    offers = [
        offer("3.00", "azure", region, instance_type=kind, pricing=way) for region, kind in kinds.items() for way in ("on_demand", "spot")
    ]
    context = market(settings, *offers)
    for option in compared(context).options:
        price = {"provider": "azure", "region": option.offer.region, "pricing": option.offer.pricing}
        alone = estimate(context, {**WORKLOAD, "hardware": {"accelerator": "H100", "count": 64}, "price": price})
        assert alone.price.instance_type == option.offer.instance_type
        assert option.time is not None
        assert option.time.wall_clock_hours == alone.estimate.time.wall_clock_hours
        noted = {each.field: each.value for each in alone.assumptions}
        assert noted["hardware.inter_node_gbps"] == shown_network(option)


def test_it_is_said_whose_networks_are_modelled(settings: Settings) -> None:
    """With their sources, and of whom none is known."""
    offers = (offer("3.00", "azure", instance_type="Standard_ND96is_noIB_H100_v5"), offer("3.00", "somewhere", instance_type="eight"))
    (note,) = (each for each in compared(market(settings, *offers)).assumptions if each.field == "hardware.inter_node_gbps")
    assert note.value == "each option's own"
    assert "azure: " in note.source
    assert "not known of somewhere eight" in note.source


def test_many_unknown_networks_are_counted(settings: Settings) -> None:
    """An assumption has room for some thousand characters: of a provider with hundreds of unknown instance types the first are named."""
    offers = [offer("3.00", "somewhere", instance_type=f"kind-{number:03}") for number in range(300)]
    (note,) = (each for each in compared(market(settings, *offers)).assumptions if each.field == "hardware.inter_node_gbps")
    assert "not known of somewhere kind-000, kind-001, kind-002 and 297 more" in note.source


def test_instances_smaller_than_a_node_are_modelled_as_the_data_sheets(settings: Settings) -> None:
    """Their links are not known, so they are ruled out."""
    small = offer("3.00", "azure", instance_type="Standard_NC80adis_H100_v5", accelerator_count=2)
    option = only(compared(market(settings, small)))
    assert shown_network(option) == 3200
    assert not option.feasible


BARE = WORKLOAD | {"storage": {"checkpoints_kept": 0}, "failures": {"spare_share": 0}}


def test_whole_instances_are_rented(settings: Settings) -> None:
    """100 accelerators take 13 instances of 8 and 25 of 4, and all of them are paid for all the time."""
    context = market(settings, offer("2.00"), offer("2.00", instance_type="four", accelerator_count=4))
    eight, four = sorted(compared(context, {"counts": [100]}, workload=BARE).options, key=lambda option: option.nodes)
    assert (eight.nodes, four.nodes) == (13, 25)
    hours, usd = p50(eight)
    assert usd == pytest.approx(hours * 104 * 2)
    assert rent(four) == pytest.approx(hours * 100 * 2)


def test_instances_smaller_than_the_node_are_not_taken_for_it(settings: Settings) -> None:
    """Nobody says what joins them; as many as one instance holds are right."""
    context = market(
        settings, offer("2.00", instance_type="one", accelerator_count=1), offer("2.00", instance_type="four", accelerator_count=4)
    )
    found = compared(context, {"counts": [4, 8, 64]})
    feasible = {(option.offer.instance_type, option.count) for option in found.options if option.feasible}
    assert feasible == {("four", 4)}
    assert found.infeasible == {"splits_nodes": 5}
    assert all("the links between instances are not known" in option.reasons[0] for option in found.options if not option.feasible)


def test_a_torus_is_let_in_slices(settings: Settings) -> None:
    """Slices beside one another have no torus between them, trays of one rack do have its links."""
    tpu: dict[str, Any] = {"accelerator": "Google-TPU-v6e"}
    slices = [offer("1.20", "gcp", "us-east5", instance_type=f"v6e-{size}", accelerator_count=size, **tpu) for size in (8, 64, 256)]
    tray = offer("9.00", "gcp", "us-east5", instance_type="a4x", accelerator="NVIDIA-GB200", accelerator_count=4)
    found = compared(market(settings, *slices, tray), {"counts": [64]})
    assert {option.offer.instance_type for option in found.options if option.feasible} == {"v6e-64", "v6e-256", "a4x"}


def test_spot_costs_preemptions_in_time_and_money(settings: Settings) -> None:
    """At the same price it is held longer and costs more: work lost, detection and restarts, with energy; waiting costs time alone."""
    context = market(settings, offer("2.00"), offer("2.00", pricing="spot"))
    kept, spot = sorted(compared(context).options, key=lambda option: option.offer.pricing)
    assert kept.time is not None
    assert spot.time is not None
    assert spot.time.expected_interruptions > kept.time.expected_interruptions
    assert spot.time.goodput < kept.time.goodput
    longer = spot.time.accelerator_hours.p50 / kept.time.accelerator_hours.p50
    waited = p50(spot)[0] / p50(kept)[0] / longer
    assert waited == pytest.approx(1 / spot_capacity().share_of_time.p50)
    assert longer == pytest.approx(kept.time.goodput / spot.time.goodput)
    assert longer > 1
    assert rent(kept) < rent(spot) < waited * rent(kept)
    assert kept.energy is not None
    assert spot.energy is not None
    assert spot.energy.mwh / kept.energy.mwh == pytest.approx(longer)


def test_preemptions_stated_are_those_of_spot_alone(settings: Settings) -> None:
    """On demand nobody takes the machine away, whatever spot is like."""
    context = market(settings, offer("2.00"), offer("2.00", pricing="spot"))
    calm, rough = (
        {option.offer.pricing: p50(option)[0] for option in compared(context, workload=WORKLOAD | {"failures": failures}).options}
        for failures in ({"preemptions_per_node_hour": rate, "capacity_share": 1.0} for rate in (0, 0.2))
    )
    assert calm["spot"] == calm["on_demand"] == rough["on_demand"]
    assert rough["spot"] > 1.1 * calm["spot"]


@pytest.mark.parametrize("pricing", ["reserved_1y", "reserved_3y"])
def test_a_reservation_is_paid_by_the_whole_term(settings: Settings, pricing: str) -> None:
    """What the run leaves unused of it is paid as well, and the answer says how much is used."""
    reserved = only(compared(market(settings, offer("1.00", pricing=pricing)), workload=BARE))
    hours, usd = p50(reserved)
    term = ONE_YEAR * (1 if pricing == "reserved_1y" else 3)
    assert 0 < hours < term
    assert usd == pytest.approx(64 * term * 1.0)
    assert reserved.commitment is not None
    assert (reserved.commitment.term_hours, reserved.commitment.paid_hours) == (term, term)
    assert reserved.commitment.used_share == pytest.approx(hours / term)


def test_a_stated_term_is_paid_instead_of_the_usual_one(settings: Settings) -> None:
    """Commitments of any length: what is stated counts, whatever the kind of pricing is called."""
    for pricing in ("reserved", "reserved_1y"):
        terms = OfferTerms(term_hours=730.0)
        reserved = only(compared(market(settings, offer("1.00", pricing=pricing, terms=terms)), workload=BARE))
        assert reserved.commitment is not None
        assert reserved.commitment.term_hours == 730.0
        assert reserved.offer.terms is not None
        assert reserved.offer.terms.term_hours == 730.0


def test_tiers_of_one_instance_are_options_of_their_own(settings: Settings) -> None:
    """Each with an id of its own."""
    tiers = [offer(usd, pricing="reserved_1y", terms=OfferTerms(minimum_accelerators=least)) for usd, least in (("2.00", 8), ("1.80", 64))]
    found = compared(market(settings, *tiers), workload=BARE)
    assert len({option.id for option in found.options}) == len(found.options) == 2


def test_a_run_longer_than_the_term_pays_two(settings: Settings) -> None:
    """Work around the run uses the term up as the run does."""
    workload = BARE | {"data": {"tokens": 15 * 10**12}, "overhead": {"reruns": 0.2}}
    reserved = only(compared(market(settings, offer("1.00", pricing="reserved_1y")), {"counts": [32]}, workload=workload))
    hours, usd = p50(reserved)
    terms = -(-hours * 1.2 // ONE_YEAR)
    assert terms > 1
    assert usd == pytest.approx(32 * terms * ONE_YEAR)
    assert only(compared(market(settings, offer("1.00")))).commitment is None


def test_spares_are_paid_beside_the_instances(settings: Settings) -> None:
    """Their number is said, so that the bill can be followed: 2 % of 32 nodes are one, of 8 none."""
    workload = BARE | {"failures": {"spare_share": 0.02}}
    found = compared(market(settings, offer("2.00")), {"counts": [64, 256]}, workload=workload)
    few, many = sorted(found.options, key=lambda option: option.count)
    assert (few.spare_accelerators, many.spare_accelerators, many.nodes) == (0, 8, 32)
    for option in (few, many):
        hours, usd = p50(option)
        assert usd == pytest.approx(hours * (option.count + option.spare_accelerators) * 2)


def test_a_layout_of_the_callers_own_that_does_not_fit_is_no_option(settings: Settings) -> None:
    """An estimate reports it, a comparison must not recommend it."""
    layout = {"parallelism": {"tensor": 1, "pipeline": 1, "data": 64, "context": 1}, "micro_batch": 1, "zero_stage": 0}
    big = WORKLOAD | {"model": {"preset": "llama-2-70b"}, "training": WORKLOAD["training"] | layout}
    found = compared(market(settings, offer("2.00"), offer("1.00", pricing="spot")), workload=big)
    assert found.infeasible == {"cannot_run": 2}
    assert all("no layout fits" in option.reasons[0] and option.cost_usd is None for option in found.options)
    fits = compared(market(settings, offer("2.00")), workload=big | {"model": {"preset": "gpt2-xl"}})
    assert only(fits).feasible


def test_a_rate_measured_on_one_accelerator_is_warned_of_on_several(settings: Settings) -> None:
    """One of them alone is what was measured."""
    measured = WORKLOAD | {"efficiency": {"tokens_per_s_per_accelerator": 5000.0}}
    context = market(settings, offer("2.00"), offer("1.00", accelerator=A100))

    def warned(accelerators: list[str]) -> bool:
        return any(
            "used for all 2 accelerators" in text for text in compared(context, {"accelerators": accelerators}, workload=measured).warnings
        )

    assert warned(["H100", "A100-80GB"])
    assert not warned(["H100"])
    assert not any("used for all" in text for text in compared(context).warnings)


def test_energy_is_that_of_the_offers_region_unless_stated(settings: Settings) -> None:
    """A grid of hydropower emits less for the same run; a region stated for the workload stands for all."""
    context = market(settings, offer("2.00", "nebius", "eu-north1"), offer("2.00", "aws", "eu-central-1"))
    finland, germany = (option.energy for option in sorted(compared(context).options, key=lambda option: option.offer.region, reverse=True))
    assert finland is not None
    assert germany is not None
    assert finland.tco2e / finland.mwh < germany.tco2e / germany.mwh
    one = compared(context, workload=WORKLOAD | {"energy": {"region": "country:FRA"}})
    assert len({option.energy for option in one.options}) == 1


def test_power_paid_beside_a_clouds_price_is_warned_of(settings: Settings) -> None:
    """A cloud's price contains it."""
    context = market(settings, offer("2.00"))
    assert any("includes power" in text for text in compared(context, workload=WORKLOAD | {"energy": {"usd_per_kwh": 0.1}}).warnings)
    assert not any("includes power" in text for text in compared(context).warnings)


VARIANTS: dict[str, list[dict[str, Any]]] = {
    "precision": [{"name": "bf16", "workload": {}}, {"name": "fp8", "workload": {"training": {"precision": "fp8"}}}],
    "method": [
        {"name": "full", "workload": {"training": {"method": "full_finetune"}, "data": {"tokens": 10**9}}},
        {"name": "LoRA", "workload": {"training": {"method": "lora", "lora_rank": 16}, "data": {"tokens": 10**9}}},
    ],
    "model": [
        {"name": "dense", "workload": {"model": {"preset": "llama-2-70b"}}},
        {"name": "experts", "workload": {"model": {"preset": "mixtral-8x7b"}}},
        {"name": "smaller, longer", "workload": {"model": {"preset": "llama-2-7b"}, "data": {"tokens": 4 * 10**12}}},
    ],
}


@pytest.mark.parametrize("variants", VARIANTS.values(), ids=VARIANTS)
def test_a_variant_is_the_workload_with_its_changes(settings: Settings, variants: list[dict[str, Any]]) -> None:
    """Each is compared as it would be alone, beside the others."""
    context = market(settings, offer("2.00"), offer("1.00", pricing="spot"))
    together = compared(context, {"counts": [64, 128]}, variants=variants)
    assert together.considered == 4 * len(variants)
    assert len({(option.variant, option.cost_usd) for option in by_id(together).values()}) == 4 * len(variants)
    for variant in variants:
        change = variant["workload"]
        training = WORKLOAD["training"] | change.get("training", {})
        alone = compared(context, {"counts": [64, 128]}, workload=WORKLOAD | change | {"training": training})
        own = [option for option in together.options if option.variant == variant["name"]]
        assert [(option.count, option.cost_usd, option.energy) for option in own] == [
            (option.count, option.cost_usd, option.energy) for option in alone.options
        ]


def test_what_a_variant_makes_cheaper_is_seen(settings: Settings) -> None:
    """fp8 against bf16, adapters against full fine-tuning, experts against a dense model of their size."""
    context = market(settings, offer("2.00"), offer("1.30", accelerator=A100))

    def best(name: str) -> list[str]:
        found = compared(context, {"counts": [64], "accelerators": ["H100"]}, variants=VARIANTS[name])
        return [str(option.variant) for option in found.options]

    assert best("precision") == ["fp8", "bf16"]
    assert best("method") == ["LoRA", "full"]
    assert best("model").index("experts") < best("model").index("dense")


def test_every_variant_has_its_best_option_in_the_answer(settings: Settings) -> None:
    """However few are shown; with how many are feasible, and of a variant none of whose options is, why."""
    context = market(settings, offer("2.00"), offer("3.00", "gcp", "us-central1"))
    variants = [
        {"name": "short", "workload": {"data": {"tokens": 10**11}}},
        {"name": "long", "workload": {}},
        {"name": "endless", "workload": {"data": {"tokens": 10**16}}},
    ]
    found = compared(context, {"counts": [64, 128]}, variants=variants, limit=1)
    shown = by_rank(found)
    short, long, endless = found.variants
    for block in (short, long):
        best = shown[str(block.best)]
        assert (best.variant, best.feasible) == (block.name, True)
        assert (block.wall_clock_hours, block.cost_usd) == p50(best)
        assert block.feasible == 4
        assert block.reason is None
    assert (endless.best, endless.cost_usd, endless.feasible) == (None, None, 0)
    assert "if a deadline or max_wall_clock_days is stated" in str(endless.reason)
    assert compared(context).variants == ()


def by_rank(found: Comparison) -> dict[str, Option]:
    return {option.id: option for option in found.options}


def test_an_option_says_what_joins_its_nodes(settings: Settings) -> None:
    """The rate that is modelled; where there is one node, nothing."""
    context = market(settings, offer("2.00"))
    rates = {
        option.count: option.throughput and option.throughput.inter_node_gbps for option in compared(context, {"counts": [8, 64]}).options
    }
    assert rates[8] is None
    assert (rates[64] or 0) > 0
