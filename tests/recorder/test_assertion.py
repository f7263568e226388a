"""The assertion on the scale of a model's attention."""

import importlib
import math
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch

assert_attention_scale: Any = importlib.import_module("attn_tui.testing").assert_attention_scale


def layer_of(scale: float, heads: int = 4, before: float = 1.0) -> Any:
    """A module of one layer of attention, which multiplies q by `before`, and scores by `scale`."""

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = torch.nn.Linear(32, 96)

        def forward(self, x: Any) -> Any:
            q, k, v = (each.unflatten(-1, (heads, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
            weights = torch.softmax((before * q) @ k.mT * scale, -1)
            return (weights @ v).transpose(1, 2).flatten(-2)

    return Attention()


def model_of(*layers: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*layers)


X = torch.randn(2, 24, 32, generator=torch.Generator().manual_seed(1))
RIGHT = 1 / math.sqrt(8)


def test_a_model_with_the_expected_scale_passes_and_stays_in_its_mode() -> None:
    model = model_of(layer_of(RIGHT), layer_of(RIGHT)).train()
    assert_attention_scale(model, X)
    assert_attention_scale(model, X, expect=RIGHT)
    assert model.training


@pytest.mark.parametrize(
    ("wrong", "product"),
    [
        (layer_of(RIGHT * 1.06), "× 0.3748"),
        (layer_of(RIGHT, before=RIGHT), "× 0.125"),
        (layer_of(1.0), "× 1"),
    ],
)
def test_a_wrong_scale_in_one_layer_fails_in_one_sentence_for_all_its_heads(wrong: Any, product: str) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_attention_scale(model_of(layer_of(RIGHT), wrong), X)
    _, told = str(failure.value).splitlines()
    assert all(words in told for words in ("layer 1, all 4 heads", f"{product}, ", "× 0.3536 = 1/√8"))


def test_another_scale_may_be_the_expected_one() -> None:
    assert_attention_scale(model_of(layer_of(1 / 8)), X, expect="1/d")
    with pytest.raises(AssertionError, match="1/d"):
        assert_attention_scale(model_of(layer_of(RIGHT)), X, expect="1/d")


def test_a_recording_keeps_what_is_intended(tmp_path: Path) -> None:
    model, path = model_of(layer_of(1 / 8)), tmp_path / "heads.safetensors"
    for expect, healthy in (("1/d", True), (RIGHT, False)):
        with torch.no_grad(), attn_tui.record(model, path, values=True, expect=expect):
            model(X)
        assert attn_tui.diagnose(path).healthy == healthy


def test_a_model_without_attention_fails() -> None:
    with pytest.raises(AssertionError, match="no attention"):
        assert_attention_scale(torch.nn.Linear(32, 32), X)


def test_pytorch_s_own_module_passes() -> None:
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x, need_weights=False)[0]

    assert_attention_scale(Own(), X)
