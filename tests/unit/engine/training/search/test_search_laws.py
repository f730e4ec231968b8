"""Laws of the layout search, on networks, machines and batches that hypothesis chooses."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.training.model import Experts, Model
from service.domain.training.run import RECOMPUTES, Axes, Cluster, Training
from service.engine.training.layouts import Layouts, candidate_layouts
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.search.alternatives import FITTING_ALTERNATIVES, MESH, SPENT_IN
from service.engine.training.search.fit_advice import what_would_fit
from service.engine.training.search.layout_search import LayoutChoice, choose_layout
from service.engine.training.step.step_time import step_time
from tests.unit.engine.builders import (
    A100,
    GIB,
    GPT_3,
    H100,
    LLAMA_2_70B,
    LLAMA_7B,
    MIXTRAL,
    accelerator,
    cluster,
    gpt,
    llama,
    training,
    utilisation,
)

SHARES = utilisation()
NETWORKS: tuple[Model, ...] = (
    LLAMA_7B,
    LLAMA_2_70B,
    MIXTRAL,
    gpt(40, 5120, 40),
    gpt(18, 2304, 18),
    llama(28, 3072, 24, 8, 8192, 128_256, tied_embeddings=True),
    llama(16, 2048, 16, 16, 5632, experts=Experts(60, 4, 1408, shared_experts=4)),
)
COUNTS = (1, 2, 6, 8, 12, 16, 24, 32, 40, 64, 72, 96, 128)
AXES = ("tensor", "pipeline", "data", "context", "expert", "expert_tensor", "virtual_pipeline", "micro_batch", "zero_stage", "recompute")


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Model, Training, Cluster]:
    """A network, how it is trained and a machine that its batch can use."""
    count = draw(st.sampled_from(COUNTS))
    asked = training(
        seq_len=draw(st.sampled_from((1024, 2048, 4096, 6000, 8192))),
        global_batch=draw(st.integers(count, 8 * count)),
        flash_attention=draw(st.booleans()),
        optimizer=draw(st.sampled_from(("adamw", "adamw_8bit", "sgd"))),
    )
    return draw(st.sampled_from(NETWORKS)), asked, cluster(count, draw(st.sampled_from((A100, H100))))


def searched(job: tuple[Model, Training, Cluster]) -> tuple[Layouts, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Every layout of the search, with its sequences a second and whether it fits, by the models themselves."""
    model, asked, machine = job
    layouts = candidate_layouts(model, asked, machine)
    steps = step_time(model, asked, machine, SHARES, layouts)
    return layouts, steps.batch / steps.total, memory_use(model, asked, layouts).total <= machine.accelerator.usable_memory_bytes


def preferred(job: tuple[Model, Training, Cluster], layouts: Layouts) -> tuple[np.ndarray[Any, Any], ...]:
    """Of every layout whether it leaves room and stays within the fast link, stays within it and fits, and fits."""
    model, asked, machine = job
    needed, capacity = memory_use(model, asked, layouts).total, machine.accelerator.usable_memory_bytes
    linked = np.maximum(layouts.tensor, layouts.expert_tensor) <= machine.link_domain
    return linked & (needed <= asked.footprint.filled_share * capacity), linked & (needed <= capacity), needed <= capacity


def chosen(job: tuple[Model, Training, Cluster]) -> LayoutChoice:
    model, asked, machine = job
    return choose_layout(model, asked, machine, SHARES)


def rate_of(choice: LayoutChoice) -> float:
    return float(choice.steps.batch[0] / choice.steps.total[0])


def leaves_room(choice: LayoutChoice, job: tuple[Model, Training, Cluster]) -> bool:
    """Whether it fills no more of the memory than jobs do that can choose."""
    return choice.total_bytes <= job[1].footprint.filled_share * job[2].accelerator.usable_memory_bytes


@given(jobs())
def test_the_search_is_never_beaten_by_what_it_searched(job: tuple[Model, Training, Cluster]) -> None:
    """What is taken makes up the machine and nothing of the search is faster of what leaves room within the fast link, else of what fits.

    Where nothing fits, it is the leanest.
    """
    layouts, rates, fits = searched(job)
    choice = chosen(job)
    row = choice.layouts.row(0)
    assert math.prod(row[name] for name in ("tensor", "pipeline", "data", "context")) == job[2].count
    assert (layouts.tensor * layouts.pipeline * layouts.data * layouts.context == job[2].count).all()
    assert choice.fits == fits.any()
    if choice.fits:
        assert choice.total_bytes <= job[2].accelerator.usable_memory_bytes
        first = next(some for some in preferred(job, layouts) if some.any())
        assert rate_of(choice) == pytest.approx(rates[first].max(), rel=1e-12)
    else:
        assert choice.total_bytes == pytest.approx(memory_use(job[0], job[1], layouts).total.min(), rel=1e-12)


@given(jobs(), st.data())
def test_fixing_an_axis_never_makes_the_run_faster(job: tuple[Model, Training, Cluster], data: st.DataObject) -> None:
    """Any of the axes fixed to any values the search goes through come back as they were, at no higher rate with as much room and link."""
    model, asked, machine = job
    layouts = candidate_layouts(model, asked, machine)
    row = layouts.row(data.draw(st.integers(0, len(layouts) - 1)))
    names = data.draw(st.sets(st.sampled_from(AXES)))
    axes = Axes(**{name: RECOMPUTES[row[name]] if name == "recompute" else row[name] for name in names})
    fixed = chosen((model, replace(asked, axes=axes), machine))
    assert all(fixed.layouts.row(0)[name] == row[name] for name in names)
    free = chosen(job)
    assert free.fits or not fixed.fits
    if preferred(job, fixed.layouts)[0].all():
        assert rate_of(fixed) <= rate_of(free) * (1 + 1e-12)


@given(jobs(), st.sampled_from(("zero_stage", "recompute")))
def test_recomputing_and_sharding_more_never_save_time(job: tuple[Model, Training, Cluster], name: str) -> None:
    """Of the same layout more recomputation and a higher ZeRO stage are never faster, and ZeRO 0 is neither faster nor smaller than 1.

    The search rests on it: it leaves out ZeRO 0, and times only the least of each that fits.
    """
    model, asked, machine = job
    base = candidate_layouts(model, asked, machine)
    levels = (1, 2, 3) if name == "zero_stage" else (0, 1, 2)
    grown = [replace(base, **{name: np.full(len(base), level)}) for level in levels]
    times = [step_time(model, asked, machine, SHARES, layouts).total for layouts in grown]
    for faster, slower in itertools.pairwise(times):
        assert (faster <= slower * (1 + 1e-12)).all()
    plain, first = (replace(base, zero_stage=np.full(len(base), stage)) for stage in (0, 1))
    assert (
        step_time(model, asked, machine, SHARES, first).total <= step_time(model, asked, machine, SHARES, plain).total * (1 + 1e-12)
    ).all()
    assert (memory_use(model, asked, first).total <= memory_use(model, asked, plain).total).all()


@given(jobs())
def test_alternatives_inform(job: tuple[Model, Training, Cluster]) -> None:
    """The others are of other kinds, the fastest first, each with what it loses and why; one may be faster, which needs too much memory.

    That one does not fit, or leaves less room than the one taken has to.
    """
    choice = chosen(job)
    others = choice.alternatives
    rates = [other.tokens_per_s_per_accelerator for other in others]
    assert rates == sorted(rates, reverse=True)
    own = rate_of(choice) * job[1].seq_len / job[2].count
    capacity = job[2].accelerator.usable_memory_bytes
    for other in others:
        assert other.slower_by == pytest.approx(1 - other.tokens_per_s_per_accelerator / own, abs=1e-9)
        assert other.fits == (other.memory_gb * 1e9 <= capacity)
    first = sum(other.slower_by < 0 for other in others[:1])
    for other in others[:first]:
        assert other.memory_gb * 1e9 > (job[1].footprint.filled_share * capacity if leaves_room(choice, job) else capacity)
        assert other.why.startswith("leaves " if other.fits else f"needs {other.memory_gb:,.1f} GB of ")
    slower = others[first:]
    assert len(slower) <= FITTING_ALTERNATIVES
    for other in slower:
        assert other.fits
        assert other.slower_by >= 0
        assert other.why == "as fast" or any(part in other.why for part in SPENT_IN.values())
    meshes = [tuple(other.parallelism[name] for name in MESH) for other in slower]
    taken = tuple(choice.layouts.row(0)[name] for name in MESH)
    kinds = [tuple(other.parallelism.values()) for other in slower]
    assert len(set(kinds)) == len(kinds)
    assert (taken not in meshes and len(set(meshes)) == len(meshes)) or set(meshes) == {taken}


@given(jobs())
def test_a_whole_layout_has_no_alternatives(job: tuple[Model, Training, Cluster]) -> None:
    """With every axis fixed there is nothing to choose from."""
    model, asked, machine = job
    row = chosen(job).layouts.row(0)
    axes = Axes(**{name: RECOMPUTES[row[name]] if name == "recompute" else row[name] for name in AXES})
    given_whole = chosen((model, replace(asked, axes=axes), machine))
    assert given_whole.layouts.row(0) == row
    assert given_whole.alternatives == ()


@given(
    st.sampled_from((LLAMA_7B, LLAMA_2_70B, MIXTRAL, GPT_3)),
    st.integers(1, 20),
    st.integers(1, 64),
    st.sampled_from((1024, 4096, 16_384)),
    st.sampled_from((24, 40, 80)),
)
@example(LLAMA_2_70B, 12, 16, 4096, 80)
def test_advice_is_the_least_that_does(model: Model, count: int, batch: int, seq_len: int, gib: int) -> None:
    """The machine that is named holds the model, and one with a node less does not, with the batch asked for or a sequence a device."""
    machine = cluster(count, accelerator(usable_memory_bytes=gib * GIB))
    asked = training(global_batch=max(batch, count), seq_len=seq_len)
    advice = what_would_fit(model, asked, machine)[0]
    if holds(model, asked, machine):
        assert "layout that is searched for" in advice
        return
    if advice.startswith("no number"):
        assert not any(holds(model, replace(asked, global_batch=8 * nodes), replace(machine, count=8 * nodes)) for nodes in (4, 64, 512))
        return
    found = re.search(r"^(\d+) of these accelerators hold it(?: with a batch of (\d+) sequences)?$", advice)
    assert found is not None, advice
    enough, needed_batch = int(found[1]), int(found[2] or asked.global_batch)
    assert enough > count
    assert enough % 8 == 0 or enough in (2, 4)
    assert holds(model, replace(asked, global_batch=needed_batch), replace(machine, count=enough))
    fewer = enough - 8 if enough > 8 else enough // 2
    if fewer >= count:
        assert not holds(model, asked, replace(machine, count=fewer))
        assert not holds(model, replace(asked, global_batch=max(asked.global_batch, fewer)), replace(machine, count=fewer))


def holds(model: Model, asked: Training, machine: Cluster) -> bool:
    """Whether the search finds a layout that fits."""
    try:
        return choose_layout(model, asked, machine, SHARES).fits
    except InvalidRequest:
        return False
