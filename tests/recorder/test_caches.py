"""Generations with caches of keys that do not grow: the prompt is recorded, and what is generated does not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load, replay

transformers: Any = pytest.importorskip("transformers", reason="needs transformers: make test-torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

PROMPT = 20
SMALL = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 99,
}  # fmt: skip


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("cache", ["static", "sliding"])
def test_the_prompt_of_a_generation_is_recorded(cache: str, implementation: str, tmp_path: Path) -> None:
    window = 8 if cache == "sliding" else None
    config = transformers.MistralConfig(**SMALL, sliding_window=window)
    config._attn_implementation = implementation
    torch.manual_seed(0)
    model = transformers.MistralForCausalLM(config).eval()
    ids = torch.randint(3, 99, (2, PROMPT), generator=torch.Generator().manual_seed(1))
    options: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    options |= {"cache_implementation": "static"} if cache == "static" else {}
    expected = model.generate(ids, **options)
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        found = model.generate(ids, **options)
    assert torch.equal(expected, found)
    held, metadata = load(tmp_path / "a.safetensors")
    assert recorder.complete
    assert len(metadata["layers"]) == 2
    for layer in metadata["layers"]:
        prefix = f"layers.{layer['index']}.attn"
        assert (layer["causal"], layer["scale"], layer.get("window")) == (True, 0.25, window)
        assert held[f"{prefix}.q"].shape[2] == PROMPT
        lse, _ = replay(layer, held)
        assert torch.allclose(lse.float(), held[f"{prefix}.lse"], atol=1e-5)
