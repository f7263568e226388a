"""The training loops of docs/recording.md record each nth step, and their scalars arrive: `make test-trainers`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import attn_tui
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text("utf-8")
SECTION = PAGE.partition("## While a model trains\n")[2].partition("\n## ")[0]
*LOOPS, SCALARS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)

MODEL = """
import torch
from torch import nn

torch.manual_seed(0)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(x + self.attention(x, x, x)[0]).mean(1)

model, loss = Model(), nn.functional.mse_loss
loader = torch.utils.data.DataLoader([(torch.randn(6, 32), torch.randn(1)) for _ in range(24)], batch_size=4)
"""
LIGHTNING = """
import lightning

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model

    def training_step(self, batch):
        return loss(self.model(batch[0]), batch[1])

    def validation_step(self, batch):
        self.model(batch[0])

    def val_dataloader(self):
        return loader

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

pl_module = Module()
"""
TRANSFORMERS = """
import torch, transformers

model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=1, n_head=4, n_embd=32, vocab_size=50))
tokens = torch.randint(0, 50, (24, 6))
dataset = [{"input_ids": each, "labels": each} for each in tokens]
args = transformers.TrainingArguments(
    "out", per_device_train_batch_size=2, gradient_accumulation_steps=2, num_train_epochs=1, report_to="none",
    use_cpu=True, save_strategy="no",
)
"""
ACCELERATE = MODEL + "optimizer = torch.optim.SGD(model.parameters(), 0.01)\n"
BEFORE = {"lightning": MODEL + LIGHTNING, "transformers": TRANSFORMERS, "accelerate": ACCELERATE}


def run(code: str, folder: Path) -> None:
    """Run a program in a folder, with steps of 2 instead of 100."""
    own = {"OMP_NUM_THREADS": "1", "WANDB_MODE": "offline", "ACCELERATE_USE_CPU": "true", "PYTHONWARNINGS": ""}
    found = subprocess.run(
        [sys.executable, "-c", code.replace("every=100", "every=2")],
        cwd=folder,
        env={**os.environ, **own},  # those of trainers are no errors
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "attn-tui" not in found.stderr


def test_the_page_has_a_loop_for_each_trainer_of_about_ten_lines() -> None:
    assert len(LOOPS) == len(BEFORE)
    for name, loop in zip(BEFORE, LOOPS, strict=True):
        assert f"import {name}\n" in loop
        assert len([line for line in loop.splitlines() if line]) <= 10
    assert len(SCALARS.splitlines()) == 5


@pytest.mark.parametrize("name", BEFORE)
def test_a_loop_records_every_nth_step(name: str, tmp_path: Path) -> None:
    if find_spec(name) is None or find_spec("torch") is None:
        pytest.skip("needs make test-trainers")
    run(BEFORE[name] + LOOPS[[*BEFORE].index(name)], tmp_path)
    files = sorted((tmp_path / "run").iterdir())
    steps = [0, 2, 4, 6] if name == "lightning" else [0, 2, 4]  # which validates after the last one
    assert [each.name for each in files] == [f"step-{step:06}.safetensors" for step in steps]
    rows = attn_tui.watch(tmp_path / "run").rows()
    assert sorted((row["step"], row["head"]) for row in rows) == [(steps[-1], head) for head in range(4)]
    assert attn_tui.diagnose(files[-1], expect="1/sqrt(d)").healthy


WRITER = """
import attn_tui, wandb
from torch.utils.tensorboard import SummaryWriter

writer, run = SummaryWriter("tensorboard"), wandb.init(dir=".")
"""
READ = """
writer.close()
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator("tensorboard").Reload()
for head, value in enumerate((47.16, 7.0)):
    (point,) = events.Scalars(f"max_logit/1.{head}")
    assert point.step == 900 and abs(point.value - value) < 0.01, point
    assert abs(run.summary[f"max_logit/1.{head}"] - value) < 0.01
assert len(events.Tags()["scalars"]) == 4
run.finish()
"""


def test_scalars_of_the_newest_step_arrive(tmp_path: Path) -> None:
    for each in ("torch", "wandb", "tensorboard"):
        if find_spec(each) is None:
            pytest.skip("needs make test-trainers")
    (tmp_path / "run").symlink_to(Path(__file__).parents[1] / "data" / "run.jsonl")
    run(WRITER + SCALARS.replace('"run/"', '"run"') + READ, tmp_path)
