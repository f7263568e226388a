"""Generations: every query is kept beside the keys that it saw, or it is said how many are not, and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load, replay

transformers: Any = pytest.importorskip("transformers", reason="needs transformers: make test-torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default"), pytest.mark.filterwarnings("ignore:attn-tui")]

PROMPT, NEW = 12, 8
SMALL = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 99,
}  # fmt: skip
BOTH = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "d_model": 64, "vocab_size": 99}  # fmt: skip
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "decoder": ("LlamaConfig", "LlamaForCausalLM", {**SMALL, "num_key_value_heads": 4}),
    "grouped": ("LlamaConfig", "LlamaForCausalLM", SMALL),
    "T5": ("T5Config", "T5ForConditionalGeneration", {
        "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "vocab_size": 99,
        "decoder_start_token_id": 0}),
    "BART": ("BartConfig", "BartForConditionalGeneration", {
        **BOTH, "max_position_embeddings": 64, "decoder_start_token_id": 2, "forced_eos_token_id": None}),
    "Whisper": ("WhisperConfig", "WhisperForConditionalGeneration", {
        **BOTH, "max_source_positions": 30, "max_target_positions": 64, "decoder_start_token_id": 3,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "suppress_tokens": None,
        "begin_suppress_tokens": None}),
}  # fmt: skip


def model_of(family: str, implementation: str, **more: Any) -> Any:
    config, kind, values = FAMILIES[family]
    made = getattr(transformers, config)(**{**values, **more})
    made._attn_implementation = implementation
    torch.manual_seed(0)
    return getattr(transformers, kind)(made).eval()


def inputs_of(family: str, padded: bool = False, tokens: int = PROMPT) -> dict[str, Any]:
    numbers = torch.Generator().manual_seed(1)
    if family == "Whisper":
        return {"input_features": torch.randn(2, 80, 60, generator=numbers)}
    ids = torch.randint(3, 97, (2, tokens), generator=numbers)
    mask = torch.ones_like(ids)
    if padded:
        mask[1, slice(4) if family in ("decoder", "grouped") else slice(-4, None)] = 0
    return {"input_ids": ids, "attention_mask": mask}


def generated(path: Path, model: Any, inputs: dict[str, Any], record: dict[str, Any], **options: Any) -> Any:
    """Return a generation and its recorder, after a comparison with the same generation without a recorder."""
    wanted = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False, "pad_token_id": 0, **options}
    wanted |= {"return_dict_in_generate": True, "output_scores": True}

    def run() -> Any:
        return transformers.GenerationMixin.generate(model, **inputs, **wanted)  # Whisper's own splits speech

    expected = run()
    with attn_tui.record(model, path, values=True, **record) as recorder:
        found = run()
    assert torch.equal(expected.sequences, found.sequences)
    assert all(torch.equal(a, b) for a, b in zip(expected.scores, found.scores, strict=True))
    return found, recorder


def layers_of(path: Path) -> list[tuple[dict[str, Any], int, int]]:
    """Return the layers of a file that explains itself, with how many queries and keys each has."""
    held, metadata = load(path)
    found: list[tuple[dict[str, Any], int, int]] = []
    for layer in metadata["layers"]:
        prefix = f"layers.{layer['index']}.attn"
        lse, o = replay(layer, held)
        known = torch.isfinite(held[f"{prefix}.lse"])
        assert torch.allclose(lse.float()[known], held[f"{prefix}.lse"][known], atol=2e-6)
        assert o is not None
        assert torch.allclose(o.float()[known], held[f"{prefix}.o"][known], atol=2e-6)
        assert "verified to rounding" in layer["notes"]
        found.append((layer, held[f"{prefix}.q"].shape[2], held[f"{prefix}.k"].shape[2]))
    return found


def assert_healthy(path: Path, expect: str = "1/sqrt(d)") -> None:
    verdicts = [head.verdict.word for head in attn_tui.diagnose(str(path), expect=expect).heads]
    assert verdicts
    assert set(verdicts) == {"healthy"}


@pytest.mark.parametrize("kind", ["greedy", "beam", "padded"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_generation_is_kept_query_by_query(family: str, implementation: str, kind: str, tmp_path: Path) -> None:
    path, model = tmp_path / "a.safetensors", model_of(family, implementation)
    beams = {"num_beams": 3} if kind == "beam" else {}
    found, recorder = generated(path, model, inputs_of(family, kind == "padded"), {}, **beams)
    crossed = hasattr(found.past_key_values, "cross_attention_cache")
    cache = found.past_key_values.self_attention_cache if crossed else found.past_key_values
    tokens = cache.get_seq_length()
    assert tokens == (NEW if crossed else PROMPT + NEW - 1)
    left_out = re.search(r"^(\d+) decode steps? not kept: beams changed places", recorder.summary, re.MULTILINE)
    missing = int(left_out[1]) if left_out else 0
    assert (missing > 0) == (kind == "beam") == (not recorder.complete)
    assert str(missing) in load(path)[1].get("notes", "0")
    of_cross = [layer for layer in layers_of(path) if layer[0].get("attention") == "cross"]
    of_encoder = [layer for layer in layers_of(path) if "encoder." in layer[0]["name"].replace("decoder", "")]
    assert bool(of_encoder) == crossed
    own = [layer for layer in layers_of(path) if layer not in [*of_cross, *of_encoder]]
    assert [rows for _, rows, _ in of_cross] == [tokens] * (2 if crossed else 0)  # beams share the encoder's text
    assert [(rows + missing, keys + missing, layer["causal"]) for layer, rows, keys in own] == [
        (tokens, tokens, True)
    ] * 2
    assert_healthy(path, "1" if family == "T5" else "1/sqrt(d)")


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(
    ("window", "cache"), [(None, "static"), (8, None), (8, "static"), (16, None), (16, "static")]
)
def test_static_and_sliding_caches(
    window: int | None, cache: str | None, implementation: str, tmp_path: Path
) -> None:
    config = transformers.MistralConfig(**SMALL, sliding_window=window)
    config._attn_implementation = implementation
    torch.manual_seed(0)
    model, path = transformers.MistralForCausalLM(config).eval(), tmp_path / "a.safetensors"
    static = {"cache_implementation": cache} if cache else {}
    _, recorder = generated(path, model, inputs_of("grouped", True), {}, **static)
    assert recorder.complete
    for layer, rows, keys in layers_of(path):
        assert (layer["causal"], layer["scale"], layer.get("window")) == (True, 0.25, window)
        assert (rows, keys) == (PROMPT + NEW - 1, PROMPT + NEW - 1)
    assert_healthy(path)


def test_tokens_that_are_taken_back_are_not_kept(tmp_path: Path) -> None:
    """As where another model proposes tokens, of which some are refused."""
    path, other = tmp_path / "a.safetensors", model_of("decoder", "eager")
    inputs = {name: values[:1] for name, values in inputs_of("grouped").items()}
    model, calls = model_of("grouped", "sdpa"), list[int]()

    def count(_: Any, __: Any, named: Any) -> None:
        calls.append(named["input_ids"].shape[1])

    model.register_forward_pre_hook(count, with_kwargs=True)
    found, recorder = generated(path, model, inputs, {}, max_new_tokens=12, assistant_model=other)
    tokens = found.sequences.shape[1]
    assert sum(calls) / 2 > tokens - 1  # some were taken back
    assert recorder.complete
    assert [(rows, keys) for _, rows, keys in layers_of(path)] == [(tokens - 1, tokens - 1)] * 2
    assert_healthy(path)


@pytest.mark.parametrize(("family", "pattern"), [("Whisper", "encoder_attn"), ("T5", "EncDecAttention")])
@pytest.mark.parametrize("beams", [1, 3])
def test_cross_attention_alone(family: str, pattern: str, beams: int, tmp_path: Path) -> None:
    path, model = tmp_path / "a.safetensors", model_of(family, "sdpa")
    _, recorder = generated(path, model, inputs_of(family), {"layers": pattern}, num_beams=beams)
    assert recorder.complete
    assert [(pattern in layer["name"], rows) for layer, rows, _ in layers_of(path)] == [(True, NEW)] * 2


ROWS, BEAMS = "a layer has at most 18 rows (twice --rows)", "beams changed places (num_beams=1 keeps all)"


@pytest.mark.parametrize(
    ("window", "options", "why"),
    [
        (None, {"max_new_tokens": 30}, ROWS),
        (8, {"max_new_tokens": 30}, ROWS),
        (8, {"num_beams": 3}, BEAMS),
        (None, {"num_beams": 3, "cache_implementation": "static"}, BEAMS),
    ],
)
def test_what_is_not_kept_is_said_to_the_end(
    window: int | None, options: dict[str, Any], why: str, tmp_path: Path
) -> None:
    config = transformers.MistralConfig(**SMALL, sliding_window=window)
    torch.manual_seed(0)
    model, path = transformers.MistralForCausalLM(config).eval(), tmp_path / "a.safetensors"
    _, recorder = generated(path, model, inputs_of("grouped"), {"rows": 9}, **options)
    _, rows, _ = layers_of(path)[0]
    missing = options.get("max_new_tokens", NEW) - 1 - (rows - 9)  # 9 rows are of the prompt
    assert f"{missing} decode steps not kept: {why}" in recorder.summary
    assert f"{missing} decode steps not kept: {why}" in load(path)[1]["notes"]
    assert not recorder.complete
    assert_healthy(path)


def test_a_second_generation_is_another_step(tmp_path: Path) -> None:
    """Also after one that was not kept as a whole, and with a static cache, whose keys are as many as before."""
    model = model_of("grouped", "eager")
    options = {"do_sample": False, "pad_token_id": 0, "cache_implementation": "static", "max_new_tokens": 6}
    with attn_tui.record(model, tmp_path / "run", every=1, rows=8) as recorder:
        model.generate(**inputs_of("grouped"), **options)
        model.generate(**inputs_of("grouped"), **options)
    assert len(recorder.files) == 2
    shapes = [load(file)[0]["layers.0.attn.q"].shape for file in recorder.files]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("every", [2, 3])
@pytest.mark.parametrize("family", ["grouped", "T5"])
def test_every_counts_generations(family: str, every: int, tmp_path: Path) -> None:
    model = model_of(family, "sdpa")
    with attn_tui.record(model, tmp_path / "run", every=every) as recorder:
        for number in range(5):
            inputs = inputs_of(family, tokens=PROMPT + number)
            model.generate(**inputs, max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0)
    assert recorder.complete, recorder.summary
    assert [Path(file).stem for file in recorder.files] == [f"step-{step:06d}" for step in range(0, 5, every)]
    for file in recorder.files:
        held, metadata = load(file)
        step = int(metadata["step"])
        shapes = [held[f"layers.{place}.attn.q"].shape[2] for place in range(len(metadata["layers"]))]
        decoder = PROMPT + step + 3
        assert shapes == ([decoder] * 2 if family == "grouped" else [PROMPT + step] * 2 + [4] * 4)


class Cached(torch.nn.Module):
    """Attention over a cache of a fixed size, of whatever its memory holds where no key is yet."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 2
        self.qkv = torch.nn.Linear(8, 24)
        self.register_buffer("keys", torch.full((1, 2, 12, 4), float("nan")))
        self.register_buffer("values", torch.zeros(1, 2, 12, 4))

    def forward(self, x: Any, place: Any) -> Any:
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        self.keys[:, :, place], self.values[:, :, place] = k, v
        scores = (q @ self.keys.mT * 0.5).masked_fill(torch.arange(12) > place[:, None], -float("inf"))
        return x + (torch.softmax(scores, -1) @ self.values).transpose(1, 2).flatten(2)


class Stack(torch.nn.Module):
    """Blocks that begin a pass each, as a program calls their model's `forward`."""

    def __init__(self, kind: type[Cached] = Cached) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(kind() for _ in range(3))

    def forward(self, x: Any, place: Any) -> Any:
        for block in self.blocks:
            x = block(x, place)
        return x


def decoded(model: Any, path: Path, steps: int, **options: Any) -> Any:
    """Return the recorder of a prompt of 4 tokens and this many steps of one token."""
    x = torch.randn(1, 12, 8, generator=torch.Generator().manual_seed(4))
    with torch.no_grad(), attn_tui.record(model, path, **options) as recorder:
        for begun, end in [(0, 4), *((place, place + 1) for place in range(4, 4 + steps))]:
            model.forward(x[:, begun:end], torch.arange(begun, end))
    return recorder


def test_memory_that_no_query_saw_is_not_compared(tmp_path: Path) -> None:
    recorder = decoded(Stack(), tmp_path / "a.safetensors", 6)
    assert recorder.complete, recorder.summary
    assert load(tmp_path / "a.safetensors")[0]["layers.0.attn.q"].shape[2] == 10


@pytest.mark.filterwarnings("ignore")
def test_a_decode_step_that_is_not_kept_is_counted_once(tmp_path: Path) -> None:
    recorder = decoded(Stack(), tmp_path / "a.safetensors", 6, rows=4)
    assert "2 decode steps not kept: a layer has at most 8 rows" in recorder.summary


@pytest.mark.filterwarnings("ignore")
def test_another_kernel_is_not_taken_for_beams(tmp_path: Path) -> None:
    """PyTorch's plain kernel multiplies queries and keys by √scale each."""
    attention = torch.nn.attention

    class Fused(Cached):
        def forward(self, x: Any, place: Any) -> Any:
            q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
            self.keys[:, :, place], self.values[:, :, place] = k, v
            seen = torch.arange(12) <= place[:, None]
            backend = attention.SDPBackend.MATH if len(place) == 1 else attention.SDPBackend.FLASH_ATTENTION
            with attention.sdpa_kernel(backend):
                sdpa = torch.nn.functional.scaled_dot_product_attention
                return x + sdpa(q, self.keys.nan_to_num(), self.values, seen).transpose(1, 2).flatten(2)

    recorder = decoded(Stack(Fused), tmp_path / "a.safetensors", 6)
    assert "6 decode steps not kept: " in recorder.summary
    assert "beams" not in recorder.summary
