"""A callback of Lightning: `Trainer(…, callbacks=[LightningCallback("https://outlay.example.com", run_id)])`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from outlay_client.tracker import Tracker

# The framework has two package names.
Callback: Any = import_module("lightning.pytorch" if find_spec("lightning") else "pytorch_lightning").Callback

EXIT_S = 5.0


class LightningCallback(Callback):  # type: ignore[misc]
    """Reports progress every few steps, validations, checkpoints, and an exception as an interruption.

    Takes the arguments of `Tracker`; only the world's first process reports. Tokens are the step times `tokens_per_step`. The loss is the
    logged metric named `loss`, read every `every_steps` steps, because reading it synchronises with the accelerator.
    """

    def __init__(
        self,
        url: str,
        run_id: str,
        key: str | None = None,
        *,
        tokens_per_step: int | None = None,
        every_steps: int = 50,
        loss: str = "train_loss",
        **options: Any,
    ) -> None:
        super().__init__()
        self.arguments = (url, run_id, key)
        self.options = options
        self.tokens_per_step = tokens_per_step
        self.every_steps = every_steps
        self.loss = loss
        self.tracker: Tracker | None = None
        self._reported_step = -1
        self._checkpoint = ""

    def on_fit_start(self, trainer: Any, _module: Any) -> None:
        """Open the tracker, which reports the launch."""
        if trainer.is_global_zero:
            self.tracker = Tracker(*self.arguments, **{"accelerators": trainer.world_size, **self.options})

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Report progress every few optimizer steps, and a checkpoint written since the last batch."""
        if not self.tracker:
            return
        step = trainer.global_step
        if step != self._reported_step and step % self.every_steps == 0:
            self._reported_step = step
            self._progress(trainer)
        self._report_checkpoint(trainer)

    def on_validation_end(self, trainer: Any, _module: Any) -> None:
        """Report every metric of a validation."""
        if self.tracker and not trainer.sanity_checking:
            for name, value in trainer.callback_metrics.items():
                if name.startswith(("val", "eval", "test")):
                    self.tracker.evaluation(name, value, step=trainer.global_step)

    def on_exception(self, trainer: Any, _module: Any, exception: BaseException) -> None:
        """Report the exception as an interruption."""
        if self.tracker:
            self.tracker.interruption(f"{type(exception).__name__}: {exception}", step=trainer.global_step)
            self.tracker.close(EXIT_S)

    def on_fit_end(self, trainer: Any, _module: Any) -> None:
        """Report the final progress, and send it."""
        if self.tracker:
            self._report_checkpoint(trainer)
            self._progress(trainer)
            self.tracker.close(EXIT_S)

    def _progress(self, trainer: Any) -> None:
        if self.tracker:
            step = trainer.global_step
            tokens = None if self.tokens_per_step is None else step * self.tokens_per_step
            self.tracker.progress(step, tokens_done=tokens, loss=trainer.callback_metrics.get(self.loss))

    def _report_checkpoint(self, trainer: Any) -> None:
        """Report the newest file of the Trainer's checkpoint callback. It is written after `on_save_checkpoint`, and so is looked up
        later."""
        paths = (getattr(trainer.checkpoint_callback, name, "") for name in ("_last_checkpoint_saved", "best_model_path"))
        newest = next(filter(None, paths), "")
        if self.tracker and newest and newest != self._checkpoint:
            self._checkpoint = newest
            self.tracker.checkpoint(Path(newest), step=trainer.global_step)
