"""Measuring this machine: which shapes are timed, what stands beside their times, what is said where it cannot be done."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from service.domain.training.utilisation import BadMeasurement
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.usecases.measurement import measure as module
from service.usecases.measurement.measure import PLANS, BenchmarkOptions, CannotMeasure, benchmark_shapes, decoder, measure
from service.usecases.resolution.user_measurements import measured_case
from tests.unit.usecases.measurement.machine import DAY, bench

HAS_TORCH = importlib.util.find_spec("torch") is not None


def silent(_text: str) -> None:
    """Nobody listens."""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A GPU that behaves as the model says with half of its peak."""
    made = bench()
    monkeypatch.setattr(module, "_bench", lambda: made)
    return made


class TestShapes:
    """Which shapes are timed."""

    @pytest.mark.parametrize(("name", "free_bytes"), [("H200", 139e9), ("H100", 78e9), ("A10G", 22e9), ("V100-16GB", 15e9)])
    def test_every_device_gets_tiny_stacks_and_three_widths_that_fit(self, name: str, free_bytes: float) -> None:
        """Two depths of the same tiny layers, then enough widths to show a scatter."""
        found = list(benchmark_shapes(PLANS["cuda"], BenchmarkOptions(), free_bytes, find_accelerator(name).accelerator))
        shallow, deep, *wide = found
        assert deep.layers == 4 * shallow.layers
        assert (deep.hidden_size, deep.seq_len) == (shallow.hidden_size, shallow.seq_len)
        assert len({shape.hidden_size for shape in wide}) == len(wide) >= 3
        assert all(module._bytes(shape, find_accelerator(name).accelerator) <= free_bytes for shape in found)

    def test_what_the_user_chose_is_timed_as_chosen(self) -> None:
        """Even where the careful count says that it does not fit."""
        chosen = BenchmarkOptions(layers=6, hidden_size=8192, seq_len=2048, micro_batch=32)
        *_, wide = benchmark_shapes(PLANS["cuda"], chosen, 15e9, find_accelerator("V100-16GB").accelerator)
        assert (wide.layers, wide.hidden_size, wide.seq_len, wide.micro_batch) == (6, 8192, 2048, 32)

    @pytest.mark.parametrize("hidden", [64, 100, 256, 1000, 1024, 4096, 5120, 8192])
    def test_layers_have_proportions_that_can_be_built(self, hidden: int) -> None:
        """Key heads divide heads; Llama's feed-forward at its own width."""
        shape = decoder(2, hidden, 128, 1)
        assert shape.attention_heads % shape.kv_heads == 0
        assert shape.ffn_hidden_size % 256 == 0
        assert decoder(2, 4096, 128, 1).ffn_hidden_size == 11008

    def test_layers_alone_have_the_weights_of_llama_s(self) -> None:
        """A Llama 2 7B layer has 202 million weights; with grouped heads, 25 million fewer."""
        from service.engine.training.parameters import count_parameters

        model = measured_case(decoder(1, 4096, 4096, 1), find_accelerator("H100").accelerator, "bf16").model
        assert count_parameters(model).total == pytest.approx(202.4e6 - 2 * 0.75 * 4096**2, rel=1e-3)


class TestMeasure:
    """The document that comes of it."""

    @pytest.mark.usefixtures("machine")
    def test_each_shape_stands_beside_its_prediction_with_the_error_as_found(self) -> None:
        """Seconds are the median of the steps; error is predicted over measured, less one."""
        found = measure(BenchmarkOptions(steps=5), DAY, silent)
        assert found["accelerator"] == "NVIDIA-H100-80GB-SXM"
        assert (found["measured_on"], found["torch"], found["cuda"]) == ("2026-11-21", "2.9.1", "12.8")
        for row in found["shapes"]:
            assert row["fastest_seconds"] < row["seconds"] < row["slowest_seconds"]
            assert row["error"] == pytest.approx(row["predicted_seconds"] / row["seconds"] - 1)
            assert row["tokens_per_s"] == pytest.approx(row["micro_batch"] * row["seq_len"] / row["seconds"])
            assert 0 < row["mfu"] < 0.6
        assert [row["size"] for row in found["products"]] == list(PLANS["cuda"].products)

    def test_a_shape_that_does_not_fit_is_left_out_and_said(self, machine: Any) -> None:
        """The others are measured."""
        said: list[str] = []
        real = machine.step_seconds

        def short_of_memory(shape: Any, on: object, steps: int) -> list[float]:
            if shape.hidden_size == 8192:
                raise MemoryError
            answer: list[float] = real(shape, on, steps)
            return answer

        machine.step_seconds = short_of_memory
        found = measure(BenchmarkOptions(), DAY, said.append)
        assert 8192 not in {row["hidden_size"] for row in found["shapes"]}
        assert any("8192" in text and "left out" in text for text in said)

    def test_times_above_the_peak_are_refused(self, machine: Any) -> None:
        """Such as those of a clock read too early."""
        machine.step_seconds = lambda _shape, _on, _steps: [1e-6]
        with pytest.raises(BadMeasurement, match=r"above the dense peak of 989\.4"):
            measure(BenchmarkOptions(), DAY, silent)

    def test_a_device_nobody_knows_has_to_be_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The error says where the names live; with a name it is measured as that."""
        monkeypatch.setattr(module, "_bench", lambda: bench(device_name="NVIDIA Graphics Device"))
        with pytest.raises(CannotMeasure, match=r"Graphics Device.*--accelerator.*outlay accelerators"):
            measure(BenchmarkOptions(), DAY, silent)
        assert measure(BenchmarkOptions(accelerator="h100"), DAY, silent)["accelerator"] == "NVIDIA-H100-80GB-SXM"
        with pytest.raises(CannotMeasure, match="H100"):
            measure(BenchmarkOptions(accelerator="H10"), DAY, silent)

    def test_a_device_without_a_bf16_peak_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """There is no share of a peak that does not exist."""
        without = next(part for part in load_accelerators().values() if "bf16" not in part.peak_tflops)
        monkeypatch.setattr(module, "_bench", bench)
        with pytest.raises(CannotMeasure, match="states no bf16 peak"):
            measure(BenchmarkOptions(accelerator=without.name), DAY, silent)

    @pytest.mark.skipif(HAS_TORCH, reason="PyTorch is installed here: its absence cannot be shown")
    def test_without_torch_it_says_what_to_install(self) -> None:
        """In so many words."""
        with pytest.raises(CannotMeasure, match=r"pip install 'torch>=2\.5'"):
            measure(BenchmarkOptions(), DAY, silent)


@pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch, which is not installed: pip install 'torch>=2.5'")
class TestRealTorch:
    """The benchmark itself, on whatever is at hand."""

    def test_it_times_what_it_says(self) -> None:
        """Four times the tokens take longer; a product of known size has a rate above nought."""
        from service.usecases.measurement import torch_benchmark

        on = torch_benchmark.device()
        short, long = (min(torch_benchmark.step_seconds(decoder(1, 128, tokens, 1), on, 3)) for tokens in (32, 512))
        assert 0 < short < long
        assert torch_benchmark.matmul_tflops(64, on) > 0

    def test_a_processor_is_measured_and_stands_for_no_accelerator(self) -> None:
        """Its document names none, and a name for it is refused."""
        from service.usecases.measurement import torch_benchmark

        if torch_benchmark.device().kind != "cpu":
            pytest.skip("needs a machine without a GPU")
        found = measure(BenchmarkOptions(steps=1), DAY, silent)
        assert found["accelerator"] is None
        assert all("error" not in row and row["seconds"] > 0 for row in found["shapes"])
        with pytest.raises(CannotMeasure, match="no GPU"):
            measure(BenchmarkOptions(accelerator="H100"), DAY, silent)
