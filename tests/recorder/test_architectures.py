"""Models of many architectures in three implementations: outputs unchanged, multipliers right, logits explained."""

from __future__ import annotations

import json
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from architectures import ARCHITECTURES, Architecture, build, implementations, run
from attn_tui.tui.cli.main import main
from pytorch import torch
from replay import load, replay

pytest.importorskip("transformers", reason="needs transformers: make test-torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

CASES = [
    pytest.param(each, implementation, id=f"{each.model}-{implementation}")
    for each in ARCHITECTURES
    for implementation in implementations(each)
]


def uncompiled(implementation: str) -> Any:
    """Return a context in which transformers does not compile flex_attention, which takes a minute a model."""
    return torch.compiler.set_stance("force_eager") if implementation == "flex_attention" else nullcontext()


@pytest.mark.parametrize(("architecture", "implementation"), CASES)
def test_an_architecture(
    architecture: Architecture, implementation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings(), uncompiled(implementation):
        warnings.simplefilter("ignore")
        model = build(architecture, implementation)
        expected = run(model, architecture.inputs)
        with attn_tui.record(model, tmp_path / "a.safetensors", values=True) as recorder:
            found = run(model, architecture.inputs)
    assert torch.equal(expected, found)
    assert recorder.complete, recorder.summary
    held, metadata = load(tmp_path / "a.safetensors")
    assert len(metadata["layers"]) == architecture.calls
    for layer in metadata["layers"]:
        factors = layer.get("prescaled", [1, 1])
        if architecture.scale is not None:
            assert layer["scale"] * factors[0] * factors[1] == pytest.approx(architecture.scale, rel=1e-5)
        assert "NOT" not in layer["notes"]
        prefix = f"layers.{layer['index']}.attn"
        lse, o = replay(layer, held)
        some = torch.isfinite(lse)
        assert o is not None
        assert torch.allclose(lse[some].float(), held[f"{prefix}.lse"][some], rtol=2e-6, atol=2e-6)
        size = held[f"{prefix}.o"].abs().max()
        assert (o[some] - held[f"{prefix}.o"][some]).abs().max() < 4e-6 * size  # T5's unscaled logits: 2.2e-6
    capsys.readouterr()
    assert main(["diagnose", str(tmp_path / "a.safetensors"), "--format", "json"]) == 0
    assert {head["verdict"] for head in json.loads(capsys.readouterr().out)["heads"]} == {"healthy"}


@pytest.mark.parametrize(("implementation", "count"), [("eager", 61), ("sdpa", 49), ("flex_attention", 43)])
def test_this_many_architectures_are_tested(implementation: str, count: int) -> None:
    assert sum(implementation in implementations(each) for each in ARCHITECTURES) == count


def test_attention_that_makes_an_image_smaller_is_counted(tmp_path: Path) -> None:
    """Between the stages of LeViT are two layers more than its configuration says."""
    transformers: Any = pytest.importorskip("transformers")
    sizes = {"hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "key_dim": [16, 16, 16]}
    model = transformers.LevitModel(transformers.LevitConfig(image_size=64, depths=[4, 4, 4], **sizes)).eval()
    inside = [name for name, module in model.named_modules() if hasattr(module, "attention_biases")]
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model(torch.randn(1, 3, 64, 64))
    assert recorder.complete, recorder.summary
    assert [layer["name"] for layer in load(tmp_path / "a.safetensors")[1]["layers"]] == inside
    assert len(inside) == 4 + 1 + 4 + 1 + 4
