"""The client's callbacks in the real frameworks, where OUTLAY_TEST_FRAMEWORKS names a Python that has torch, transformers and lightning."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.client.service import RUN, Service
from tests.unit.providers.misbehaving_server import listening

REPOSITORY = Path(__file__).parents[2]
MODEL = """
import sys, torch
url, run, folder = sys.argv[1:]
rows = [{"x": torch.randn(4), "labels": torch.randn(())} for _ in range(64)]
"""
HUGGING_FACE = """
from transformers import Trainer, TrainingArguments
from outlay_client.huggingface import HuggingFaceCallback
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x=None, labels=None):
        logits = self.layer(x).squeeze(-1)
        return {"loss": ((logits - labels) ** 2).mean(), "logits": logits}
arguments = TrainingArguments(output_dir=folder + "/out", max_steps=10, logging_steps=2, save_steps=5, eval_steps=5,
                              eval_strategy="steps", report_to=[], use_cpu=True, disable_tqdm=True)
callback = HuggingFaceCallback(url, run, buffer_dir=folder + "/buffer", tokens_per_step=1000)
Trainer(Model(), arguments, train_dataset=rows, eval_dataset=rows[:8], callbacks=[callback]).train()
"""
LIGHTNING = """
import lightning.pytorch as pl
from outlay_client.lightning import LightningCallback
class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        loss = self.layer(batch["x"]).pow(2).mean()
        self.log("train_loss", loss)
        return loss
    def validation_step(self, batch, index):
        self.log("val_loss", self.layer(batch["x"]).pow(2).mean())
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
data = torch.utils.data.DataLoader(rows, batch_size=8)
callback = LightningCallback(url, run, buffer_dir=folder + "/buffer", tokens_per_step=1000, every_steps=4)
pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[callback], default_root_dir=folder, logger=False,
           enable_progress_bar=False, enable_model_summary=False).fit(Model(), data, data)
"""


@pytest.fixture
def python() -> str:
    """The Python that has the frameworks."""
    program = os.environ.get("OUTLAY_TEST_FRAMEWORKS")
    if not program:
        pytest.skip("needs torch, transformers and lightning: OUTLAY_TEST_FRAMEWORKS names a Python that has them")
    return program


@pytest.mark.parametrize(
    ("script", "steps", "metric"),
    [(HUGGING_FACE, [2, 4, 6, 8, 10, 10], "eval_loss"), (LIGHTNING, [4, 8, 8], "val_loss")],
    ids=["transformers", "lightning"],
)
def test_a_training_is_told(python: str, tmp_path: Path, script: str, steps: list[int], metric: str) -> None:
    """Launch, logged steps with their tokens, evaluations and checkpoints of a real training arrive."""
    with listening(Service()) as service:
        assert isinstance(service, Service)
        command = [python, "-c", MODEL + script, service.url, RUN, str(tmp_path)]
        subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True)
    assert len(service.of("restart")) == 1
    assert [event["step"] for event in service.of("progress")] == steps
    assert [event["tokens_done"] for event in service.of("progress")] == [1000 * step for step in steps]
    assert {event["metric"] for event in service.of("evaluation")} == {metric}
    assert all(event["bytes"] > 0 for event in service.of("checkpoint"))
    assert service.of("checkpoint")
