"""Decoder layers and matrix products timed with PyTorch on the device at hand. Importing this module needs PyTorch.

Layers as Llama has them (grouped heads, RMS norm, gated feed-forward, PyTorch's own fused causal attention; no rotary
embedding), bf16 weights with fp32 masters under AdamW, one operation at a time without a compiler: what a plain program
reaches. A tuned training stack reaches more.
"""

from __future__ import annotations

import importlib
import itertools
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from service.presets.training.measured import MeasuredShape

# Loaded by name, so that types are checked the same with and without PyTorch.
torch: Any = importlib.import_module("torch")
functional: Any = importlib.import_module("torch.nn.functional")

OutOfMemory: type[Exception] = torch.OutOfMemoryError
WARM_UP_STEPS = 3
MATMUL_REPEATS = 10
Weights = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Device:
    """The device that is measured. `software`: versions of what runs there."""

    name: str
    kind: str
    memory_gib: float
    free_bytes: float
    software: dict[str, str]


def device() -> Device:
    """The first GPU that PyTorch sees, else the processor."""
    software = {"torch": str(torch.__version__)}
    if not torch.cuda.is_available():
        return Device("CPU", "cpu", 0.0, 0.0, software)
    free, total = torch.cuda.mem_get_info()
    runtime = "hip" if torch.version.hip else "cuda"
    software[runtime] = str(torch.version.hip or torch.version.cuda)
    if driver := _nvidia_driver():
        software["driver"] = driver
    return Device(torch.cuda.get_device_name(), "cuda", total / 2**30, free, software)


def _nvidia_driver() -> str:
    """The driver's version by nvidia-smi, empty where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603 - a fixed command line
    return done.stdout.split("\n")[0].strip() if done.returncode == 0 else ""


def step_seconds(shape: MeasuredShape, on: Device, steps: int) -> list[float]:
    """Duration of each of `steps` training steps of the shape's layers, after warm-up [s]."""
    run = _training_step(shape, on.kind)
    try:
        return _timed(run, on.kind, steps)
    finally:
        del run
        if on.kind == "cuda":
            torch.cuda.empty_cache()


def matmul_tflops(size: int, on: Device) -> float:
    """Rate of a product of two square bf16 matrices, median of a few [TFLOP/s]."""
    left, right = (torch.randn(size, size, device=on.kind, dtype=torch.bfloat16) for _ in range(2))
    seconds = sorted(_timed(lambda: torch.mm(left, right), on.kind, MATMUL_REPEATS))
    return float(2 * size**3 / seconds[len(seconds) // 2] / 1e12)


def _timed(run: Callable[[], object], kind: str, repeats: int) -> list[float]:
    """Duration of each repeat [s]. On a GPU by its own clock, all queued at once, so that only the first waits for the host."""
    for _ in range(WARM_UP_STEPS):
        run()
    if kind != "cuda":
        marks = [time.perf_counter()]
        for _ in range(repeats):
            run()
            marks.append(time.perf_counter())
        return [after - before for before, after in itertools.pairwise(marks)]
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    events[0].record()
    for event in events[1:]:
        run()
        event.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) / 1e3 for before, after in itertools.pairwise(events)]


def _training_step(shape: MeasuredShape, kind: str) -> Callable[[], None]:
    """Forward, backward and optimizer of one micro-batch."""
    torch.manual_seed(0)
    layers = [_weights(shape, kind) for _ in range(shape.layers)]
    weights = [weight for layer in layers for weight in layer.values()]
    masters = [weight.detach().float() for weight in weights]
    for master in masters:
        master.grad = torch.zeros_like(master)
    optimizer = torch.optim.AdamW(masters, lr=1e-5, fused=True)
    size = (shape.micro_batch, shape.seq_len, shape.hidden_size)
    # The input takes a gradient too, as that of an embedding would: every layer does the same work.
    given = torch.randn(size, device=kind, dtype=torch.bfloat16, requires_grad=True)
    gradient = torch.randn(size, device=kind, dtype=torch.bfloat16) / given.numel()

    def step() -> None:
        hidden = given
        for layer in layers:
            hidden = _layer(hidden, layer, shape)
        hidden.backward(gradient)
        with torch.no_grad():
            for weight, master in zip(weights, masters, strict=True):
                master.grad.copy_(weight.grad)
                weight.grad = None
            given.grad = None
            optimizer.step()
            for weight, master in zip(weights, masters, strict=True):
                weight.copy_(master)

    return step


def _weights(shape: MeasuredShape, kind: str) -> Weights:
    hidden, inner = shape.hidden_size, shape.ffn_hidden_size
    query, key = shape.attention_heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = {"qkv": (query + 2 * key, hidden), "out": (hidden, query), "gate_up": (2 * inner, hidden), "down": (hidden, inner)}
    made = {name: 0.02 * torch.randn(size, device=kind) for name, size in sizes.items()}
    made |= {name: torch.ones(hidden, device=kind) for name in ("attention_norm", "ffn_norm")}
    return {name: weight.to(torch.bfloat16).requires_grad_() for name, weight in made.items()}


def _layer(given: Any, weights: Weights, shape: MeasuredShape) -> Any:
    batch, length, hidden = given.shape
    heads, groups, width = shape.attention_heads, shape.kv_heads, shape.head_dim
    normed = functional.rms_norm(given, (hidden,), weights["attention_norm"], 1e-5)
    split = functional.linear(normed, weights["qkv"]).split([heads * width, groups * width, groups * width], dim=-1)
    query, key, value = (part.view(batch, length, -1, width).transpose(1, 2) for part in split)
    attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=heads != groups)
    given = given + functional.linear(attended.transpose(1, 2).reshape(batch, length, heads * width), weights["out"])
    normed = functional.rms_norm(given, (hidden,), weights["ffn_norm"], 1e-5)
    gate, up = functional.linear(normed, weights["gate_up"]).chunk(2, dim=-1)
    return given + functional.linear(functional.silu(gate) * up, weights["down"])
