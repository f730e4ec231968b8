"""Levers: which single changes are offered for which run, and that what they save is the difference of two estimates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from service.config import Settings, load_settings
from service.context import AppContext
from service.domain.training.estimate import EstimateLever
from service.presets.training.levers import AIMS, load_levers
from service.usecases.training.estimate import EstimateAnswer, estimate
from service.usecases.training.levers import MIN_SAVING_SHARE, apply_change, estimate_with_levers
from tests.unit.usecases.market import A100, B200, H100, offer, open_context, sell

Request = dict[str, Any]
TRILLION, BILLION = 10**12, 10**9
BASE: Request = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": 2 * TRILLION},
    "training": {"method": "pretrain", "seq_len": 4096, "global_batch_tokens": 2**20, "precision": "bf16"},
    "hardware": {"accelerator": "H100", "count": 256},
}
MARKET = ("spot", "commitment", "region", "accelerator")


def run(**changes: Any) -> Request:
    """The base with fields at paths (two underscores for the dot) set, or taken out."""
    return apply_change(deepcopy(BASE), {path.replace("__", "."): value for path, value in changes.items()})


STATED = run(price__usd_per_accelerator_hour=2.0)
FINETUNE = run(model={"preset": "llama-2-70b"}, training__method="full_finetune", data__tokens=BILLION, hardware__count=64)
CASES: dict[str, tuple[Request, list[Request]]] = {
    "precision": (BASE, [run(training__precision="fp8"), run(hardware__accelerator="A100-80GB")]),
    "precision_16_bit": (run(training__precision="fp32"), [BASE]),
    "recomputation": (run(training__activation_recompute="full"), [BASE, run(training__activation_recompute="auto")]),
    "layout": (run(training__parallelism={"tensor": 8, "pipeline": 4}), [BASE, run(training__parallelism="auto")]),
    "batch": (BASE, [run(efficiency__mfu=0.4), run(training__global_batch_tokens=2**26)]),
    "optimizer": (BASE, [run(training__optimizer="muon"), FINETUNE, run(training__method="continued_pretrain")]),
    "optimizer_memory": (FINETUNE, [apply_change(FINETUNE, {"training.optimizer": "adamw_8bit"})]),
    "checkpoint_interval": (run(failures__checkpoint_interval_minutes=2000), [BASE]),
    "checkpoint_asynchronous": (
        run(hardware__count=2048, training__software_year=2023),
        [run(hardware__count=2048), run(hardware__count=2048, failures__checkpoint_blocking_share=0.05)],
    ),
    "spot": (BASE, [STATED, run(price__pricing="spot")]),
    "commitment": (run(data__tokens=150 * TRILLION), [BASE, STATED]),
    "region": (BASE, [STATED, run(hardware__accelerator="B200")]),
    "accelerator": (BASE, [STATED, run(hardware__accelerator="B200")]),
    "experts": (BASE, [run(model={"preset": "mixtral-8x7b"}), run(model={"params": BILLION // 2}), FINETUNE]),
    "distillation": (BASE, [run(data__tokens=90 * BILLION), run(model={"preset": "llama-2-70b"}), FINETUNE]),
    "adapters": (FINETUNE, [BASE, apply_change(FINETUNE, {"training.method": "lora"})]),
    "adapters_quantised": (FINETUNE, [BASE, apply_change(FINETUNE, {"training.method": "qlora"})]),
    "progressive_growing": (BASE, [run(model={"preset": "llama-2-70b"}), run(model={"preset": "mixtral-8x7b"}), FINETUNE]),
}


OFFERS = (
    offer(2.0),
    offer(2.1, region="europe-north1"),
    offer(0.7, pricing="spot"),
    offer(1.0, pricing="reserved_1y"),
    offer(1.5, accelerator=A100),
    offer(3.0, accelerator=B200),
)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """A market with H100 in a dirty and a clean region, spot and reserved, and an older and a newer accelerator."""
    made = open_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("data")), "OUTLAY_OFFLINE": "1"}))
    with closing(made.store):
        sell(made, "market", *OFFERS)
        yield made


@pytest.fixture
def market(settings: Settings) -> Iterator[AppContext]:
    """A market of the test's own, with nothing for sale yet."""
    made = open_context(settings)
    with closing(made.store):
        yield made


def levers_of(context: AppContext, request: Request) -> dict[str, list[EstimateLever]]:
    """The levers of a request by their kind."""
    found: dict[str, list[EstimateLever]] = {}
    for lever in estimate_with_levers(context, request).levers or ():
        found.setdefault(lever.lever, []).append(lever)
    return found


def resent(context: AppContext, request: Request, lever: EstimateLever) -> EstimateAnswer:
    """The estimate of the request with the lever's change in it."""
    return estimate(context, apply_change(request, lever.change))


def test_every_kind_has_a_case() -> None:
    """No kind is left untested."""
    assert set(CASES) == set(load_levers())


@pytest.mark.parametrize("kind", CASES)
def test_a_lever_is_offered_where_it_helps(context: AppContext, kind: str) -> None:
    """With its words, and with a saving in something that its kind aims at."""
    (lever, *_) = levers_of(context, CASES[kind][0])[kind]
    known = load_levers()[kind]
    assert (lever.title, lever.source) == (known.title, known.source)
    moves = kind in MARKET
    assert lever.risk.startswith(f"{known.risk}; the price of gcp was read on 21 Nov 2026") if moves else lever.risk == known.risk
    assert max(getattr(lever, f"saves_{aim}") for aim in known.aims) > 0


@pytest.mark.parametrize(("kind", "request_"), [(kind, request) for kind, (_, others) in CASES.items() for request in others])
def test_a_lever_is_not_offered_where_it_does_not(context: AppContext, kind: str, request_: Request) -> None:
    """What is done already, what is another method's or model's, and what saves nothing."""
    assert kind not in levers_of(context, request_)


@pytest.mark.parametrize("kind", CASES)
def test_a_saving_is_the_difference_of_two_estimates(context: AppContext, kind: str) -> None:
    """The changed request, sent again, costs, takes and emits what the lever says."""
    request = CASES[kind][0]
    own = estimate(context, request).estimate
    for lever in levers_of(context, request)[kind]:
        other = resent(context, request, lever).estimate
        assert lever.total_usd == other.cost.total_usd.p50
        assert lever.saves_usd == pytest.approx(own.cost.total_usd.p50 - other.cost.total_usd.p50, abs=0.005)
        assert lever.wall_clock_days == pytest.approx(other.time.wall_clock_hours.p50 / 24)
        assert lever.saves_days * 24 == pytest.approx(own.time.wall_clock_hours.p50 - other.time.wall_clock_hours.p50)
        assert lever.saves_tco2e == pytest.approx(own.energy.tco2e - other.energy.tco2e)


@pytest.mark.parametrize("request_", [BASE, STATED, FINETUNE, run(training__precision="fp32", failures__checkpoint_interval_minutes=2000)])
def test_every_lever_saves_something_worth_telling(context: AppContext, request_: Request) -> None:
    """More than a hundredth of the money, the time or the carbon, and no larger share of money is paid for it."""
    answer = estimate_with_levers(context, request_)
    levers = answer.levers or ()
    own = answer.estimate
    assert levers
    for lever in levers:
        shares = {
            "usd": lever.saves_usd / own.cost.total_usd.p50,
            "days": lever.saves_days * 24 / own.time.wall_clock_hours.p50,
            "tco2e": lever.saves_tco2e / own.energy.tco2e,
        }
        most = max(shares[aim] for aim in load_levers()[lever.lever].aims)
        assert most > MIN_SAVING_SHARE, lever
        assert -shares["usd"] <= most, lever


def test_levers_are_ranked_by_dollars(context: AppContext) -> None:
    """The largest saving first; of one kind no more than one for each of its aims."""
    levers = estimate_with_levers(context, BASE).levers or ()
    assert [lever.saves_usd for lever in levers] == sorted((lever.saves_usd for lever in levers), reverse=True)
    assert all(len(of_kind) <= len(AIMS) for of_kind in levers_of(context, BASE).values())


def test_the_answer_is_the_estimate_without_levers(context: AppContext) -> None:
    """Looking for levers changes nothing of it."""
    assert replace(estimate_with_levers(context, BASE), levers=None) == estimate(context, BASE)


def test_a_stated_price_is_on_no_market(context: AppContext) -> None:
    """Nobody else's price is held against the caller's own."""
    assert set(levers_of(context, STATED)).isdisjoint(MARKET)


@pytest.mark.parametrize("stated", [{"efficiency__tokens_per_s_per_accelerator": 9000.0}, {"efficiency__mfu": 0.3}])
def test_a_measured_speed_is_not_held_against_a_modelled_one(context: AppContext, stated: dict[str, float]) -> None:
    """The caller's own efficiency says nothing of another precision, accelerator or model; tokens saved are saved at that speed."""
    found = levers_of(context, run(**stated))
    assert set(found).isdisjoint(kind.name for kind in load_levers().values() if kind.modelled)
    assert {"optimizer", "spot"} <= set(found)


def test_time_is_no_lever_at_any_price(market: AppContext) -> None:
    """Half the days for several times the money is nobody's saving."""
    sell(market, "dear", offer(2.0), offer(20.0, accelerator=B200))
    assert "accelerator" not in levers_of(market, BASE)


def test_the_callers_filter_is_kept(context: AppContext) -> None:
    """One change is one change: what is sold elsewhere is no lever on a run in that region."""
    request = run(price__provider="gcp", price__region="europe-north1", data__tokens=150 * TRILLION)
    assert set(levers_of(context, request)).isdisjoint({"spot", "commitment", "accelerator"})


def test_only_a_move_leaves_the_region_that_was_asked_for(market: AppContext) -> None:
    """For a cheaper one."""
    sell(market, "dear", offer(2.0), offer(2.5, region="europe-north1"))
    (lever,) = levers_of(market, run(price__provider="gcp", price__region="europe-north1"))["region"]
    assert lever.change == {"price.provider": "gcp", "price.region": "us-central1"}


def test_a_move_is_to_a_fresh_price_while_there_is_one(market: AppContext) -> None:
    """Of the shipped prices some are a year older than others, and cost less."""
    shipped = replace(market, clock=lambda: datetime(2026, 9, 21, tzinfo=UTC))
    moves = levers_of(shipped, run(price__provider="aws"))["region"]
    for lever in moves:
        price = resent(shipped, run(price__provider="aws"), lever).price
        assert price is not None
        assert (price.provider, price.stale) == (lever.change["price.provider"], False)
        assert f"the price of {price.provider} was read on " in lever.risk


def test_a_region_may_be_cleaner_and_dearer(context: AppContext) -> None:
    """Its dollars are below 0 and its carbon is not; what was stated of the old region's grid is left out."""
    (lever,) = levers_of(context, run(energy__grid_gco2_per_kwh=400.0))["region"]
    assert lever.change == {"price.provider": "gcp", "price.region": "europe-north1", "energy.grid_gco2_per_kwh": None}
    assert lever.saves_usd < 0 < lever.saves_tco2e


def test_another_accelerator_comes_in_its_own_nodes(context: AppContext) -> None:
    """What was stated of the old machine's nodes, network and power is left out."""
    request = run(hardware__accelerators_per_node=8, hardware__inter_node_gbps=3200, energy__watts_per_accelerator=1000)
    stated = ("hardware.accelerators_per_node", "hardware.inter_node_gbps", "energy.watts_per_accelerator")
    found = levers_of(context, request)["accelerator"]
    assert [lever.change for lever in found] == [{"hardware.accelerator": B200} | dict.fromkeys(stated)]


def test_a_cheaper_older_accelerator_is_offered_too(market: AppContext) -> None:
    """Newer or cheaper: whatever saves dollars or days."""
    sell(market, "cheap", offer(4.0), offer(0.8, accelerator=A100))
    cheaper = {lever.change["hardware.accelerator"]: lever for lever in levers_of(market, BASE)["accelerator"]}[A100]
    assert cheaper.saves_days < 0 < cheaper.saves_usd


def test_single_cards_are_no_lever_on_whole_nodes(market: AppContext) -> None:
    """They are cheaper for lacking the links that are modelled."""
    sell(market, "cards", offer(2.0), offer(0.1, accelerator=A100, accelerator_count=1, instance_type="card"))
    assert "accelerator" not in levers_of(market, BASE)


def test_what_does_not_fit_is_no_lever(market: AppContext) -> None:
    """The caller's layout, which needs the larger memory, is not offered on the smaller."""
    sell(market, "small", offer(2.0), offer(0.1, accelerator="NVIDIA-A100-40GB-SXM"))
    pinned = {"training__parallelism": {"tensor": 1, "pipeline": 1, "data": 256}, "training__zero_stage": 1, "training__micro_batch": 1}
    request = run(model={"preset": "llama-2-13b"}, **pinned)
    assert estimate(market, request).estimate.memory.fits
    assert not estimate(market, apply_change(request, {"hardware.accelerator": "NVIDIA-A100-40GB-SXM"})).estimate.memory.fits
    assert "accelerator" not in levers_of(market, request)


def test_background_checkpoints_raise_goodput(context: AppContext) -> None:
    """Training waits for the copy alone."""
    request = CASES["checkpoint_asynchronous"][0]
    (lever,) = levers_of(context, request)["checkpoint_asynchronous"]
    assert resent(context, request, lever).estimate.reliability.goodput > estimate(context, request).estimate.reliability.goodput


def test_spot_saves_money_and_loses_time(context: AppContext) -> None:
    """Preemptions lower goodput, and the lost work is paid for."""
    (lever,) = levers_of(context, BASE)["spot"]
    assert lever.saves_days < 0 < lever.saves_usd
    assert resent(context, BASE, lever).estimate.reliability.goodput < estimate(context, BASE).estimate.reliability.goodput


def test_preemptions_of_capacity_that_is_not_taken_back_are_not_those_of_spot(context: AppContext) -> None:
    """A rate of 0, stated for a run on demand, would make spot free of its risk."""
    (lever,) = levers_of(context, run(failures__preemptions_per_node_hour=0))["spot"]
    assert lever.change == {"price.pricing": "spot", "failures.preemptions_per_node_hour": None}
    assert lever.saves_days < 0


def test_states_of_8_bits_save_by_the_memory_they_free(context: AppContext) -> None:
    """The optimizer's part of the memory shrinks, or the layout spends what it frees."""
    (lever, *_) = levers_of(context, FINETUNE)["optimizer_memory"]
    own, other = estimate(context, FINETUNE).estimate, resent(context, FINETUNE, lever).estimate
    assert other.memory.fits
    assert other.memory.breakdown_gb != own.memory.breakdown_gb
    assert lever.saves_usd > 0


def test_a_distilled_run_pays_for_its_teacher(context: AppContext) -> None:
    """On no fewer tokens than were published, and with the forward pass of a model of twice the size."""
    (lever,) = levers_of(context, BASE)["distillation"]
    assert lever.change["data.tokens"] == 94 * BILLION
    own = estimate(context, BASE).estimate.flops.total
    assert resent(context, BASE, lever).estimate.flops.total > own * 94 * BILLION / (2 * TRILLION)


def test_experts_keep_the_sequences_and_the_batch(context: AppContext) -> None:
    """What was assumed for the dense model holds for the one that stands for it."""
    request = run(training__seq_len=None, training__global_batch_tokens=None)
    (lever,) = levers_of(context, request)["experts"]
    assert lever.change["training.seq_len"] == 4096
    assert resent(context, request, lever).estimate.time.steps == pytest.approx(estimate(context, request).estimate.time.steps, rel=0.1)


@pytest.mark.parametrize(
    "request_",
    [
        {"model": {"preset": "resnet-50"}, "data": {"samples": 10**8}, "hardware": {"accelerator": "H100", "count": 8}},
        {"model": {"preset": "t5-11b"}, "data": {"tokens": TRILLION}, "hardware": {"accelerator": "H100", "count": 64}},
        {"model": {"preset": "vit-l-16"}, "data": {"samples": 10**8}, "hardware": {"accelerator": "H100", "count": 8}},
        {
            "model": {"preset": "llama-2-7b"},
            "data": {"raw_tokens": TRILLION},
            "training": {"method": "dpo"},
            "hardware": {"accelerator": H100, "count": 8},
        },
    ],
)
def test_every_kind_of_network_may_be_asked_for_levers(context: AppContext, request_: Request) -> None:
    """Those that are published for language models are not offered for others."""
    published = {"optimizer", "experts", "distillation", "progressive_growing"}
    assert set(levers_of(context, request_)).isdisjoint(published)
