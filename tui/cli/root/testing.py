"""Assertions on the attention of PyTorch models, for any test suite."""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from attn_tui.core.api import judging
from attn_tui.core.errors import needed

if TYPE_CHECKING:
    import torch


def assert_attention_scale(
    model: torch.nn.Module,
    *inputs: object,
    expect: str | float = "1/sqrt(d)",
    layers: str | None = None,
    **named: object,
) -> None:
    """Assert that every head of a model multiplies its scores by what is expected.

    The model is called once with these inputs, in evaluation mode and without gradients. `expect` is a rule, a number
    or a formula of d, the width of a head; `layers` are numbers and ranges or a regular expression for module names.
    Raise AssertionError, with a sentence for each fault, if one multiplies by anything else, if the
    multiplier of one is undecided, or if a call of attention was not understood or none was seen.
    """
    needed("torch", "attn_tui.testing needs PyTorch: pip install 'attn-tui[torch]'")
    import attn_tui
    import torch

    training = model.training
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        path = Path(folder) / "heads.safetensors"
        try:
            model.eval()
            warnings.simplefilter("ignore", RuntimeWarning)  # what was missed is said below
            with torch.no_grad(), attn_tui.record(model, path, layers=layers, values=True) as recorder:
                model(*inputs, **named)
        finally:
            model.train(training)
        if not path.exists():
            raise AssertionError(f"no attention was recorded: {recorder.summary}")
        diagnosis = judging.diagnose(path, expect=expect)
        if not diagnosis.healthy:
            raise AssertionError(f"attention does not multiply by {expect}:\n{diagnosis}")
        if not recorder.complete:
            raise AssertionError(f"not all attention was recorded: {recorder.summary}")
