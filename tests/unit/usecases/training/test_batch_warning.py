"""A stated batch that is too small: refused below a sequence, named where it slows the accelerators down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from service.config import load_settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.usecases.training.estimate import EstimateAnswer, estimate


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    """A context with the shipped prices."""
    folder = tmp_path_factory.mktemp("batch-warning")
    made = build_context(load_settings({"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1"}))
    with closing(made.store):
        made.store.migrate()
        yield made


def answer_with(context: AppContext, batch_tokens: int | None, count: int = 256, **training: Any) -> EstimateAnswer:
    """An estimate of Llama 2 7B with that batch; None: the usual one."""
    stated = {} if batch_tokens is None else {"global_batch_tokens": batch_tokens}
    return estimate(
        context,
        {
            "model": {"preset": "llama-2-7b"},
            "data": {"tokens": 2_000_000_000_000},
            "training": {**training, **stated},
            "hardware": {"accelerator": "H100", "count": count},
            "price": {"usd_per_accelerator_hour": 2.0},
        },
    )


def batch_warnings_of(answer: EstimateAnswer) -> list[str]:
    """The warnings that begin with the batch."""
    return [warning for warning in answer.warnings if warning.startswith("training.global_batch_tokens")]


def test_less_than_a_sequence_is_refused_at_its_field(context: AppContext) -> None:
    """A step takes whole sequences: a tenth of one is a slip, not a batch to round up."""
    with pytest.raises(
        InvalidRequest, match=r"1,000 tokens are less than one sequence of 4,096.*leave it out for the usual batch"
    ) as refused:
        answer_with(context, 1000)
    assert refused.value.pointer == "/training/global_batch_tokens"


@pytest.mark.parametrize(("tokens", "sequences"), [(4096, "1 sequence a"), (8192, "2 sequences a")])
def test_accelerators_without_a_sequence_are_warned_of(context: AppContext, tokens: int, sequences: str) -> None:
    """With the usual batch, instead of the advice to add accelerators, which would wait too."""
    answer = answer_with(context, tokens)
    (warning,) = batch_warnings_of(answer)
    assert sequences in warning
    assert "usual 4,194,304" in warning
    assert not any("check the number of accelerators" in text for text in answer.warnings)


def test_half_of_the_usual_speed_is_warned_of(context: AppContext) -> None:
    """A sequence for every sixteen accelerators."""
    (warning,) = batch_warnings_of(answer_with(context, 16 * 4096))
    assert "16 sequences" in warning


@pytest.mark.parametrize("tokens", [None, 2_097_152, 4_194_304, 16_777_216])
def test_batches_in_use_are_not_warned_of(context: AppContext, tokens: int | None) -> None:
    """The usual batch, half of it and four times as much."""
    assert batch_warnings_of(answer_with(context, tokens)) == []


def test_a_run_of_years_on_a_usual_batch_needs_more_accelerators(context: AppContext) -> None:
    """There the number of accelerators is the cause."""
    answer = answer_with(context, 4_194_304, count=4)
    assert any("check the number of accelerators" in text for text in answer.warnings)
