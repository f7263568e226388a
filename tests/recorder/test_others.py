"""Files that other tools write, made by these tools: what the documentation says of them is so."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from pytorch import torch

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "recording.md"
IDS = torch.arange(3, 15)[None]


def llama(transformers: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=99,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def test_a_folder_of_the_model_debugger_of_transformers(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs transformers: make test-torch")
    debugging: Any = pytest.importorskip("transformers.model_debugging_utils")
    model = llama(transformers)
    kept: dict[str, Any] = {}

    def keep(name: str) -> Any:
        def hook(_: Any, __: Any, out: Any) -> None:
            kept[name] = out.detach()

        return hook

    for name in ("q_proj", "k_proj"):
        model.model.layers[1].self_attn.get_submodule(name).register_forward_hook(keep(name))
    with torch.no_grad(), debugging.model_addition_debugger_context(
        model, debug_path=str(tmp_path), do_prune_layers=False, use_repr=False
    ):  # fmt: skip
        model(input_ids=IDS)
    model.config.save_pretrained(tmp_path)
    capture = open_capture(tmp_path)
    assert [(layer.index, layer.heads, layer.kv_heads) for layer in capture.layers] == [(0, 4, 2), (1, 4, 2)]
    head = read_head(capture, capture.layers[1], 3)
    np.testing.assert_array_equal(head.q[0], kept["q_proj"][0, :, 48:].numpy())
    np.testing.assert_array_equal(head.k[0], kept["k_proj"][0, :, 16:].numpy())


def test_the_converter_of_pickles_in_the_documentation(tmp_path: Path) -> None:
    q, k = torch.randn(2, 3, 8, 16).unbind(0)
    tensors = {"layers.0.attn.q": q[None], "layers.0.attn.k": k.transpose(1, 2).contiguous().transpose(1, 2)[None]}
    torch.save(tensors, tmp_path / "in.pt")
    [command] = re.findall(r"^python (-c .* in\.pt out\.safetensors)$", PAGE.read_text(), re.M)
    subprocess.run([sys.executable, *shlex.split(command)], cwd=tmp_path, check=True, timeout=300)
    capture = open_capture(tmp_path / "out.safetensors")
    head = read_head(capture, capture.layers[0], 2)
    np.testing.assert_array_equal(head.q[0], q[2].numpy())
    np.testing.assert_array_equal(head.k[0], k[2].numpy())
