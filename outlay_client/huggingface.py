"""A callback of Hugging Face's Trainer: `Trainer(…, callbacks=[HuggingFaceCallback("https://outlay.example.com", run_id)])`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from outlay_client.tracker import Tracker

TrainerCallback: Any = import_module("transformers").TrainerCallback

EVALUATION = "eval_"
TIMINGS = ("_runtime", "_per_second", "_time")
EXIT_S = 5.0


class HuggingFaceCallback(TrainerCallback):  # type: ignore[misc]
    """Reports progress at each log, evaluations and checkpoints. Takes the arguments of `Tracker`; only the world's first process reports.

    Tokens are those that the Trainer counts (`include_num_input_tokens_seen`), else the step times `tokens_per_step`.
    """

    def __init__(self, url: str, run_id: str, key: str | None = None, *, tokens_per_step: int | None = None, **options: Any) -> None:
        self.arguments = (url, run_id, key)
        self.options = options
        self.tokens_per_step = tokens_per_step
        self.tracker: Tracker | None = None

    def on_train_begin(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Open the tracker, which reports the launch."""
        if state.is_world_process_zero:
            self.tracker = Tracker(*self.arguments, **{"accelerators": args.world_size, **self.options})

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Report progress."""
        if self.tracker and logs and "loss" in logs:
            self.tracker.progress(state.global_step, tokens_done=self._tokens(state), loss=logs["loss"])

    def on_evaluate(self, _args: Any, state: Any, _control: Any, metrics: dict[str, Any] | None = None, **_: Any) -> None:
        """Report every metric of an evaluation but its timings."""
        if self.tracker:
            for name, value in (metrics or {}).items():
                if name.startswith(EVALUATION) and not name.endswith(TIMINGS):
                    self.tracker.evaluation(name, value, step=state.global_step)

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Report a checkpoint, with its size on disk."""
        if self.tracker:
            self.tracker.checkpoint(Path(args.output_dir) / f"checkpoint-{state.global_step}", step=state.global_step)

    def on_train_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Report the final progress, and send it."""
        if self.tracker:
            self.tracker.progress(state.global_step, tokens_done=self._tokens(state))
            self.tracker.close(EXIT_S)

    def _tokens(self, state: Any) -> int | None:
        counted = getattr(state, "num_input_tokens_seen", 0)
        if counted:
            return int(counted)
        return None if self.tokens_per_step is None else int(state.global_step * self.tokens_per_step)
