"""Where a run's time goes: parts that add up, and that move with what causes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.domain.quantities import Range
from service.domain.training.estimate import STEP_PARTS, Estimate, TimePart
from service.domain.training.run import Efficiency, Run, Schedule
from tests.unit.engine.builders import DEEPSEEK_V3, MIXTRAL, NEVER_FAILS, T5_11B, TINY, cluster, failures, run, training, with_training
from tests.unit.engine.training.test_estimate import SHAPES, answer

DEEP: dict[str, Any] = {"model": DEEPSEEK_V3, "cluster": cluster(1024), "training": training(global_batch=4096)}


def split_of(found: Estimate) -> dict[str, TimePart]:
    """The parts by name."""
    assert found.throughput.split is not None
    return {part.part: part for part in found.throughput.split}


@pytest.mark.parametrize("changes", [*SHAPES, {"model": MIXTRAL, "cluster": cluster(64), "schedule": Schedule(None, None, 0, 6)}])
def test_parts_add_up(changes: dict[str, Any]) -> None:
    """Shares to one, seconds to a step; the model's arithmetic at the peak is the MFU's share of a step."""
    found = answer(run(**changes))
    split = split_of(found)
    assert sum(part.share for part in split.values()) == pytest.approx(1)
    assert sum(part.step_s or 0 for part in split.values()) == pytest.approx(found.throughput.step_time_s)
    assert split["arithmetic"].step_s == pytest.approx(found.throughput.mfu.p50 * found.throughput.step_time_s)
    assert {name for name, part in split.items() if part.step_s is not None} <= set(STEP_PARTS)


def test_exchanges_are_told_apart() -> None:
    """Of a dense model no experts', on one accelerator none at all; without a pipeline no bubble."""
    assert "expert" in split_of(answer(run(**DEEP)))
    several = split_of(answer(run(model=T5_11B, cluster=cluster(32), training=training(seq_len=512, decoder_seq_len=114))))
    assert "gradient" in several
    assert "expert" not in several
    alone = split_of(answer(run(model=TINY, cluster=cluster(1))))
    assert not {"tensor", "context", "expert", "stage", "gradient", "pipeline"} & set(alone)


def test_what_stops_a_run_is_beside_its_steps() -> None:
    """Failures, waiting for capacity, maintenance: each has its part, and without it none."""
    asked = run(failures=NEVER_FAILS)
    calm = split_of(answer(asked))
    assert calm.get("failures", TimePart("failures", None, 0)).share < 1e-3
    often = split_of(answer(replace(asked, failures=failures(mttf_hours_per_accelerator=Range.exactly(200.0)))))
    assert often["failures"].share > 0.01
    waiting = split_of(answer(replace(asked, failures=replace(asked.failures, capacity_share=0.5))))
    assert waiting["capacity"].share == pytest.approx(0.5)
    closed = split_of(answer(replace(asked, schedule=Schedule(None, None, 0, 16.8))))
    assert closed["maintenance"].share == pytest.approx(0.1)


def test_waiting_for_data_is_a_part() -> None:
    """Where the data pipeline is slower than the machine."""
    asked = run()
    speed = answer(asked).throughput.tokens_per_s
    slow = with_training(asked, input_tokens_per_s_per_node=speed / asked.cluster.nodes / 4)
    assert split_of(answer(slow))["input"].share > 0.5


def test_a_stated_speed_has_no_parts() -> None:
    """Nothing is known of where it goes."""
    asked: Run = run(efficiency=Efficiency(mfu=0.4))
    assert answer(asked).throughput.split is None
