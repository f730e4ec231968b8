"""Which options a comparison has, in which order, and what it says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import InvalidRequest, NoOffer, UnknownName
from service.usecases.comparison.compare import compare
from tests.unit.usecases.comparison.comparing import A100, H100, H200, MARKET, WORKLOAD, by_id, compared, offer, selling
from tests.unit.usecases.requests import pointer_of

LISTS: dict[str, list[Any]] = {
    "accelerators": [A100, H100, H200],
    "counts": [8, 24, 64],
    "providers": ["aws", "gcp", "nebius", "runpod", "somewhere"],
    "regions": ["US", "eu-central-1", "eu-north1", "europe-west4", "nowhere", "us-east-1"],
    "pricing": ["on_demand", "reserved_1y", "spot"],
}
PARTS = st.fixed_dictionaries({name: st.lists(st.sampled_from(values), min_size=1, unique=True) for name, values in LISTS.items()})


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context that sells the market."""
    return selling(build_context(settings))


def ids(context: AppContext, candidates: dict[str, Any]) -> dict[str, Option]:
    try:
        return by_id(compared(context, candidates))
    except NoOffer:
        return {}


def test_null_candidates_mean_all(context: AppContext) -> None:
    """Every list price in every count; the counts are chosen, and all that was chosen is said."""
    nothing = dict.fromkeys(LISTS)
    found = compare(context, {"workload": WORKLOAD, "candidates": nothing, "limit": 1000})
    assumed = noted_of(found.assumptions)
    counts = assumed["candidates.counts"]
    assert found.considered == len(MARKET) * len(counts)
    assert {option.count for option in found.options} == set(counts)
    assert assumed["candidates.accelerators"] == LISTS["accelerators"]
    assert {"candidates.providers", "candidates.regions", "candidates.pricing", "objective"} <= set(assumed)
    assert by_id(found) == by_id(compare(context, {"workload": WORKLOAD, "limit": 1000}))


def noted_of(assumptions: Any) -> dict[str, Any]:
    assert all(each.source for each in assumptions)
    return {each.field: each.value for each in assumptions}


@given(PARTS, PARTS)
def test_a_further_candidate_takes_none_away(context: AppContext, some: dict[str, Any], others: dict[str, Any]) -> None:
    """The options of some candidates are those of more candidates too, with the same figures."""
    few = ids(context, some)
    many = ids(context, {name: [*some[name], *(each for each in others[name] if each not in some[name])] for name in LISTS})
    assert set(few) <= set(many)
    assert {name: plain_of(option) for name, option in few.items()} == {name: plain_of(many[name]) for name in few}


def plain_of(option: Option) -> Option:
    """The option without what depends on the others."""
    return replace(option, rank=1, on_pareto_front=False)


@given(st.fixed_dictionaries({name: st.permutations(values) for name, values in LISTS.items()}))
def test_the_order_of_candidates_does_not_matter(context: AppContext, shuffled: dict[str, Any]) -> None:
    """The whole answer is the same."""
    assert compared(context, shuffled) == compared(context, LISTS)


@pytest.mark.parametrize("objective", ["cost", "time", "carbon"])
def test_options_stand_by_the_objective_feasible_ones_first(context: AppContext, objective: str) -> None:
    """By the p50 of cost, finish or carbon; those that are ruled out come after, in the same order."""
    found = compared(context, {"counts": [32, 64, 128]}, objective=objective, constraints={"max_cost_usd": 120_000.0})

    def value(option: Option) -> float:
        assert option.cost_usd is not None
        assert option.time is not None
        assert option.energy is not None
        return {"cost": option.cost_usd.p50, "time": option.time.wall_clock_hours.p50, "carbon": option.energy.tco2e}[objective]

    keys = [(not option.feasible, value(option)) for option in found.options]
    assert keys == sorted(keys)
    assert len({feasible for feasible, _ in keys}) == 2
    assert [option.rank for option in found.options] == list(range(1, found.considered + 1))


def test_the_front_is_what_no_feasible_option_beats(context: AppContext) -> None:
    """By brute force over cost, finish and carbon; what is infeasible stands on no front and keeps nobody off it."""
    found = compared(context, {"counts": [32, 64, 128]}, constraints={"jurisdictions": ["EU"]})
    points = {
        option.id: (option.cost_usd.p50, option.time.wall_clock_hours.p50, option.energy.tco2e)
        for option in found.options
        if option.feasible and option.cost_usd and option.time and option.energy
    }

    def beaten(point: tuple[float, ...]) -> bool:
        return any(other != point and all(b <= a for a, b in zip(point, other, strict=True)) for other in points.values())

    front = {option.id for option in found.options if option.on_pareto_front}
    assert front == {name for name, point in points.items() if not beaten(point)}
    assert 0 < len(front) < len(points) < found.considered


def test_the_answer_is_cut_and_says_so(context: AppContext) -> None:
    """`limit` options of all that were considered, 50 where it is not stated."""
    found = compared(context, {"counts": [8, 16, 24, 32, 64, 128]}, limit=3)
    assert ([option.rank for option in found.options], found.considered) == ([1, 2, 3], 6 * len(MARKET))
    usual = compare(context, {"workload": WORKLOAD, "candidates": {"counts": [8, 16, 24, 32, 64, 128]}})
    assert (len(usual.options), noted_of(usual.assumptions)["limit"]) == (50, 50)


def test_marketplaces_stand_where_their_provider_is_named(settings: Settings) -> None:
    """Auction floors never do: nobody is sold capacity at them."""
    market = (offer("1.50", "vast", market="marketplace"), offer("1.10", "vast", market="auction_floor", pricing="spot"), offer("2.00"))
    context = selling(build_context(settings), market)
    assert [option.offer.market for option in compared(context).options] == ["list"]
    assert [option.offer.market for option in compared(context, {"providers": ["vast"]}).options] == ["marketplace"]
    assert compared(context, {"providers": ["VAST", "aws"]}).considered == 2


def test_the_newest_price_of_each_region_is_taken(settings: Settings) -> None:
    """An older sheet of the same region gives way, one of another region does not."""
    market = (offer("2.00", instance_type="old", days=90), offer("2.50"), offer("2.20", region="us-west-2", days=90))
    assert {option.offer.usd_per_accelerator_hour for option in compared(selling(build_context(settings), market)).options} == {2.5, 2.2}


def test_prices_of_another_year_stand_back_unless_named(settings: Settings) -> None:
    """They are taken where nobody has a newer one, and where their provider or region is named."""
    market = (offer("2.50"), offer("1.00", "lambda", "us-west-1", days=500), offer("0.50", "gcp", "us-west1", accelerator=A100, days=500))
    context = selling(build_context(settings), market)
    assert {option.offer.provider for option in compared(context).options} == {"aws", "gcp"}
    assert {option.offer.provider for option in compared(context, {"providers": ["lambda"]}).options} == {"lambda"}
    assert {option.offer.provider for option in compared(context, {"regions": ["us-west-1"]}).options} == {"lambda"}


def test_what_a_short_name_was_taken_for_is_said(context: AppContext) -> None:
    """Of candidates and of what is owned; a whole name says itself."""
    plant = {"name": "dc1", "accelerator": "A100", "count": 8, "capex_usd_per_accelerator": 15_000.0}
    found = compared(context, {"accelerators": ["H100", A100]}, on_prem=[plant])
    said = {each.field: each for each in found.assumptions}
    assert said["candidates.accelerators"].value == [A100, H100]
    assert "H100 may also mean NVIDIA-H100-80GB-PCIe" in said["candidates.accelerators"].source
    assert said["on_prem.dc1.accelerator"].value == A100
    assert "A100 may also mean" in said["on_prem.dc1.accelerator"].source
    assert "candidates.accelerators" not in {each.field for each in compared(context, {"accelerators": [H100]}).assumptions}


def test_what_nobody_sells_is_not_missed_where_nobody_asked_for_it(settings: Settings) -> None:
    """An accelerator that only a marketplace has is neither among what was compared nor a warning."""
    market = (offer("2.00"), offer("0.50", "vast", accelerator=A100, market="marketplace"))
    found = compared(selling(build_context(settings), market))
    assert noted_of(found.assumptions)["candidates.accelerators"] == [H100]
    assert not any("no offer" in text for text in found.warnings)


def test_what_nobody_sells_is_said(context: AppContext) -> None:
    """Accelerators without an offer and names nobody has are warned of, with the rest compared all the same."""
    found = compared(context, {"accelerators": ["H100", "MI300X"], "providers": ["aws", "awss"], "regions": ["us-east-1", "mars"]})
    assert found.considered == 3
    assert "no offer among these candidates: AMD-MI300X" in found.warnings
    told = {text.partition("has the ")[2].partition(":")[0] for text in found.warnings}
    assert {"providers awss (did you mean aws?)", "regions mars"} <= told
    assert pointer_of(lambda: compared(context, {"accelerators": ["MI300X"]}), NoOffer) == "/candidates"


@pytest.mark.parametrize(
    ("request_part", "kind", "pointer"),
    [
        ({"candidates": {"accelerators": ["H100", "H1000"]}}, UnknownName, "/candidates/accelerators/1"),
        ({"constraints": {"jurisdictions": ["DE", "Atlantis"]}}, UnknownName, "/constraints/jurisdictions/1"),
        ({"snapshot": "prices-0"}, UnknownName, "/snapshot"),
        ({"workload": WORKLOAD | {"model": {"preset": "nobody-7b"}}}, UnknownName, "/workload/model/preset"),
        ({"workload": WORKLOAD | {"training": {"lora_rank": 8}}}, InvalidRequest, "/workload/training/lora_rank"),
        ({"variants": [{"name": "a", "workload": {}}, {"name": "a", "workload": {}}]}, InvalidRequest, "/variants/1/name"),
        (
            {"variants": [{"name": "a", "workload": {}}, {"name": "b", "workload": {"model": {"preset": "x"}}}]},
            UnknownName,
            "/variants/1/workload/model/preset",
        ),
    ],
)
def test_problems_point_into_the_request(context: AppContext, request_part: dict[str, Any], kind: Any, pointer: str) -> None:
    """At the very field."""
    context.store.migrate()
    assert pointer_of(lambda: compared(context, **request_part), kind) == pointer


def of_machines(machines: list[dict[str, Any]]) -> dict[str, Any]:
    return {"counts": None, "machines": machines}


def test_machines_are_weighed_as_pairs(context: AppContext) -> None:
    """Those options of each accelerator in each count that are asked for, as they are there."""
    pairs = [(H100, 64), (A100, 24), (A100, 8)]
    machines = [{"accelerator": name, "count": count} for name, count in pairs]
    crossed = ids(context, {"accelerators": [H100, A100], "counts": [8, 24, 64]})
    wanted = {id_: option for id_, option in crossed.items() if (option.offer.accelerator, option.count) in pairs}
    assert 0 < len(wanted) < len(crossed)
    assert ids(context, of_machines(machines)).keys() == wanted.keys()
    found = compared(context, of_machines(machines))
    assert {(option.offer.accelerator, option.count) for option in found.options} == set(pairs)
    assert not {"candidates.accelerators", "candidates.counts"} & set(noted_of(found.assumptions))


def test_a_machine_that_nobody_sells_is_named(context: AppContext) -> None:
    """And the others are weighed."""
    found = compared(context, of_machines([{"accelerator": H100, "count": 8}, {"accelerator": "TPU-v5p", "count": 8}]))
    assert {option.offer.accelerator for option in found.options} == {H100}
    assert any(text.startswith("no offer among these candidates") and "TPU-v5p" in text for text in found.warnings)


@pytest.mark.parametrize("beside", [{"accelerators": [H100]}, {"counts": [8]}])
def test_machines_beside_accelerators_or_counts_are_refused(context: AppContext, beside: dict[str, Any]) -> None:
    """Both would say the same thing twice."""
    with pytest.raises(InvalidRequest, match="leave accelerators and counts out") as caught:
        compared(context, of_machines([{"accelerator": H100, "count": 8}]) | beside)
    assert caught.value.pointer == "/candidates/machines"


def test_an_unknown_machine_is_pointed_at(context: AppContext) -> None:
    """At its name."""
    machines = [{"accelerator": H100, "count": 8}, {"accelerator": "H1000", "count": 8}]
    assert pointer_of(lambda: compared(context, of_machines(machines)), UnknownName) == "/candidates/machines/1/accelerator"


def test_more_work_than_one_request_may_cost_is_refused(context: AppContext) -> None:
    """With what it would be, and that there is less to state."""
    many = [{"name": f"v{index}", "workload": {}} for index in range(8)]
    request = {"workload": WORKLOAD, "candidates": {"counts": list(range(8, 8 * 33, 8))}, "variants": many}
    with pytest.raises(InvalidRequest, match=r"8 workloads on 96 machines .* and on 0 owned machines are 1536 units") as caught:
        compare(context, request)
    assert caught.value.pointer == "/candidates"


def test_counts_are_fewer_where_the_work_is_more(context: AppContext) -> None:
    """So that leaving them out is never refused for them."""
    eight = [{"name": f"v{index}", "workload": {"model": {"preset": "mixtral-8x7b"}}} for index in range(8)]
    one, many = ({"workload": WORKLOAD, "variants": eight[:number], "limit": 1} for number in (1, 8))
    assert noted_of(compare(context, one).assumptions)["candidates.counts"] == [8, 16, 32, 64, 128, 256, 512, 1024]
    assert noted_of(compare(context, many).assumptions)["candidates.counts"] == [8, 64, 512]


def test_the_oldest_price_and_stale_providers_are_named(settings: Settings) -> None:
    """Prices hold for the provider's promise, here 180 days."""
    market = (offer("2.00", days=30), offer("2.10", "nebius", "eu-north1", days=200), offer("2.20", "gcp", "europe-west4", days=100))
    found = compared(selling(build_context(settings), market))
    assert found.stale_providers == ("nebius",)
    assert [option.offer.provider for option in found.options if option.offer.stale] == ["nebius"]
    assert found.prices_as_of == market[1].observed_at
    assert found.price_snapshot == "prices-1"


def test_an_id_tells_an_option_from_all_others(settings: Settings) -> None:
    """One machine type may have different accelerators, and be sold in several ways."""
    market = (
        offer("2.00", instance_type="n1"),
        offer("1.00", instance_type="n1", accelerator=A100),
        offer("2.00", instance_type="n1", accelerator_count=16),
        offer("1.90", instance_type="n1", market="marketplace"),
        offer("1.50", instance_type="n1", pricing="spot"),
    )
    found = compared(selling(build_context(settings), market), {"counts": [8, 16], "providers": ["aws"]})
    assert len(by_id(found)) == 10
    assert "aws:us-east-1:n1:8xNVIDIA-H100-80GB-SXM:on_demand:marketplace:16" in by_id(found)


def test_notes_are_merged_over_machines(context: AppContext) -> None:
    """One assumption a field, by accelerator where it differs; the energy of each offer's own region is said to be that."""
    assumptions = compared(context, {"counts": [8, 64]}).assumptions
    fields = [each.field for each in assumptions]
    assert len(fields) == len(set(fields))
    assumed = noted_of(assumptions)
    assert assumed["energy.region"] == "each offer's own"
    assert set(assumed["energy.watts_per_accelerator"]) == {A100, H100, H200}
    assert assumed["failures.preemptions_per_node_hour"]["not spot"] == 0
    assert assumed["failures.preemptions_per_node_hour"]["spot"] > 0


def test_warnings_are_of_what_can_run_and_name_few(settings: Settings) -> None:
    """What holds for all that can run stands once, and accelerators of which the same is true stand in one warning."""
    names = ("NVIDIA-H100-80GB-PCIe", "NVIDIA-H100-94GB-NVL", "NVIDIA-GH200-96GB", "NVIDIA-T4")
    market = [offer("2.00"), *(offer("1.00", accelerator=name, pricing=pricing) for name in names for pricing in ("on_demand", "spot"))]
    found = compared(selling(build_context(settings), market), {"counts": [1, 64]})
    assert found.infeasible["cannot_run"] > len(market)
    borrowed = [text for text in found.warnings if "no published throughput" in text]
    assert any(all(name in text for name in names[:2]) for text in borrowed)
    assert not any("T4" in text for text in borrowed)
    assert all(len(text) < 300 for text in found.warnings)
    assert sum(text.startswith("the cost is that of the run alone") for text in found.warnings) == 1
    assert sum(text.startswith("spot: the provider can take spot capacity back") for text in found.warnings) == 1
    assert set(noted_of(found.assumptions)["failures.preemptions_per_node_hour"]) == {"spot", "not spot"}


def test_many_borrowed_accelerators_are_counted_in_one_warning(settings: Settings) -> None:
    """The first few are named: a list of all is not read."""
    names = ("NVIDIA-H100-80GB-PCIe", "NVIDIA-H100-94GB-NVL", "NVIDIA-GH200-96GB", "NVIDIA-A40", "NVIDIA-L40S")
    found = compared(
        selling(build_context(settings), [offer("2.00"), *(offer("1.00", accelerator=name) for name in names)]), {"counts": [8]}
    )
    (text,) = (text for text in found.warnings if "no published throughput" in text)
    assert "of 5 of the accelerators (" in text
    assert sum(name in text for name in names) == 3


def test_a_warning_of_one_variant_names_it(context: AppContext) -> None:
    """And the way it is sold, where it is of that alone."""
    variants = [{"name": "calm", "workload": {"failures": {"preemptions_per_node_hour": 0.001}}}, {"name": "usual", "workload": {}}]
    spot = [text for text in compared(context, {"counts": [8, 64]}, variants=variants).warnings if "take spot capacity back" in text]
    assert [text.partition(":")[0] for text in spot] == ["usual, spot"]
