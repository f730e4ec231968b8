"""The callbacks of Hugging Face's Trainer and of Lightning, on stand-ins that call as the frameworks do.

`tests/integration/test_training_frameworks.py` runs them in the real ones where those are installed.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.client.conftest import PATIENCE_S
from tests.unit.client.service import RUN, Service

REPOSITORY = Path(__file__).parents[3]


class Base:
    """What both frameworks' callbacks descend from."""


@pytest.fixture
def frameworks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules of the frameworks' names that hold the base classes."""
    transformers, lightning, pytorch = ModuleType("transformers"), ModuleType("lightning"), ModuleType("lightning.pytorch")
    transformers.TrainerCallback = Base  # type: ignore[attr-defined]
    pytorch.Callback = Base  # type: ignore[attr-defined]
    lightning.__spec__ = importlib.machinery.ModuleSpec("lightning", None)
    for module in (transformers, lightning, pytorch):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    yield
    for name in ("huggingface", "lightning"):
        sys.modules.pop(f"outlay_client.{name}", None)


def callback(framework: str, service: Service, folder: Path, **options: Any) -> Any:
    module = importlib.import_module(f"outlay_client.{framework}")
    module.EXIT_S = PATIENCE_S  # type: ignore[attr-defined]
    name = {"huggingface": "HuggingFaceCallback", "lightning": "LightningCallback"}[framework]
    return getattr(module, name)(service.url, RUN, buffer_dir=folder / "buffer", **options)


def kinds(service: Service) -> list[str]:
    return [event["type"] for event in service.events.values()]


def test_the_package_needs_nothing_but_the_standard_library() -> None:
    """It is imported by a Python that sees no installed package."""
    script = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from outlay_client import Tracker; assert Tracker"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)


@pytest.mark.usefixtures("frameworks")
class TestHuggingFace:
    def play(self, run: Any, folder: Path, **state: Any) -> None:
        """Two logged steps, an evaluation, a checkpoint and the end."""
        (folder / "checkpoint-20").mkdir()
        (folder / "checkpoint-20" / "model.safetensors").write_bytes(b"m" * 500)
        arguments = SimpleNamespace(output_dir=str(folder), world_size=16)
        at = SimpleNamespace(is_world_process_zero=True, global_step=10, num_input_tokens_seen=0, **state)
        run.on_train_begin(arguments, at, None, model=None)
        run.on_log(arguments, at, None, logs={"loss": 2.5, "learning_rate": 1e-4}, model=None)
        at.global_step = 20
        run.on_evaluate(arguments, at, None, metrics={"eval_loss": 2.4, "eval_runtime": 3.0, "epoch": 1.0}, model=None)
        run.on_save(arguments, at, None, model=None)
        run.on_log(arguments, at, None, logs={"train_runtime": 9.0}, model=None)
        run.on_train_end(arguments, at, None, model=None)

    def test_tells_what_the_trainer_does(self, service: Service, tmp_path: Path) -> None:
        """Launch, progress, evaluation, checkpoint and where it ended, all sent when training ends."""
        self.play(callback("huggingface", service, tmp_path, tokens_per_step=1000), tmp_path)
        assert kinds(service) == ["restart", "progress", "evaluation", "checkpoint", "progress"]
        assert [(event["step"], event["tokens_done"], event["accelerators"]) for event in service.of("progress")] == [
            (10, 10_000, 16),
            (20, 20_000, 16),
        ]
        assert [(event["metric"], event["value"]) for event in service.of("evaluation")] == [("eval_loss", 2.4)]
        assert service.of("checkpoint")[0]["bytes"] == 500

    def test_tokens_the_trainer_counted_count(self, service: Service, tmp_path: Path) -> None:
        """What the Trainer has seen stands above steps times tokens."""
        run = callback("huggingface", service, tmp_path, tokens_per_step=1000)
        assert run._tokens(SimpleNamespace(num_input_tokens_seen=123, global_step=7)) == 123
        assert callback("huggingface", service, tmp_path)._tokens(SimpleNamespace(num_input_tokens_seen=0, global_step=7)) is None

    def test_other_processes_tell_nothing(self, service: Service, tmp_path: Path) -> None:
        """Only the world's first does."""
        run = callback("huggingface", service, tmp_path)
        at = SimpleNamespace(is_world_process_zero=False, global_step=0)
        run.on_train_begin(SimpleNamespace(world_size=16), at, None)
        run.on_log(None, at, None, logs={"loss": 1.0})
        run.on_evaluate(None, at, None, metrics={"eval_loss": 1.0})
        run.on_save(None, at, None)
        run.on_train_end(None, at, None)
        assert not service.events


@pytest.mark.usefixtures("frameworks")
class TestLightning:
    def trainer(self, **options: Any) -> Any:
        """A trainer's attributes that the callback reads."""
        checkpoints = SimpleNamespace(_last_checkpoint_saved="", best_model_path="")
        given = {"is_global_zero": True, "world_size": 8, "global_step": 0, "sanity_checking": False}
        return SimpleNamespace(**given | {"callback_metrics": {"train_loss": 2.5}, "checkpoint_callback": checkpoints} | options)

    def test_tells_what_the_trainer_does(self, service: Service, tmp_path: Path) -> None:
        """Launch, every second step, a validation, a checkpoint once, and where it ended."""
        run, trainer = callback("lightning", service, tmp_path, tokens_per_step=1000, every_steps=2), self.trainer()
        (tmp_path / "last.ckpt").write_bytes(b"c" * 300)
        run.on_fit_start(trainer, None)
        for trainer.global_step in (1, 2, 2, 3, 4):
            run.on_train_batch_end(trainer, None, None, None, 0)
        trainer.callback_metrics["val_loss"] = 2.4
        run.on_validation_end(trainer, None)
        trainer.checkpoint_callback._last_checkpoint_saved = str(tmp_path / "last.ckpt")
        run.on_fit_end(trainer, None)
        assert [event["step"] for event in service.of("progress")] == [2, 4, 4]
        assert [event["tokens_done"] for event in service.of("progress")] == [2000, 4000, 4000]
        assert [(event["metric"], event["value"]) for event in service.of("evaluation")] == [("val_loss", 2.4)]
        assert [event["bytes"] for event in service.of("checkpoint")] == [300]

    def test_an_exception_is_an_interruption(self, service: Service, tmp_path: Path) -> None:
        """Why training stopped is sent before it is over."""
        run, trainer = callback("lightning", service, tmp_path), self.trainer()
        run.on_fit_start(trainer, None)
        run.on_exception(trainer, None, RuntimeError("NCCL timeout"))
        assert [event["cause"] for event in service.of("interruption")] == ["RuntimeError: NCCL timeout"]

    def test_other_processes_and_dry_runs_tell_nothing(self, service: Service, tmp_path: Path) -> None:
        """Neither other ranks nor the check before training."""
        run, other = callback("lightning", service, tmp_path), self.trainer(is_global_zero=False)
        run.on_fit_start(other, None)
        run.on_train_batch_end(other, None, None, None, 0)
        run.on_validation_end(other, None)
        run.on_exception(other, None, RuntimeError())
        run.on_fit_end(other, None)
        assert not service.events
