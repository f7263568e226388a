"""Record every kernel that a GPU offers, and print what was seen. Not collected by pytest; on a GPU machine, run

python tests/recorder/cuda_checks.py
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
else:
    torch = importlib.import_module("torch")

ROOT = Path(__file__).resolve().parents[2]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
B, H, N, D = 2, 8, 200, 64

Case = tuple[str, Any, Callable[..., Any], tuple[Any, ...]]


def recorder() -> Any:
    """Return the recorder's API, loaded by its path as programs load it: attn-tui need not be installed."""
    folder = ROOT / "core" / "recorder"
    spec = importlib.util.spec_from_file_location(
        "attn_tui_recorder", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["attn_tui_recorder"] = package
    spec.loader.exec_module(package)
    return importlib.import_module("attn_tui_recorder.api")


def vectors(dtype: Any, kv_heads: int = H, d: int = D, tokens_first: bool = False) -> tuple[Any, Any, Any]:
    """Return queries, keys and values."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((B, H, N, d), (B, kv_heads, N, d), (B, kv_heads, N, d))
    q, k, v = (torch.randn(*shape, generator=generator).to(DEVICE, dtype) for shape in shapes)
    return tuple(t.transpose(1, 2).contiguous() for t in (q, k, v)) if tokens_first else (q, k, v)  # type: ignore[return-value]


def cases() -> Iterator[Case]:
    """Yield the name, number format, function and tensors of each kernel."""
    attention: Any = importlib.import_module("torch.nn.attention")
    sdpa: Any = torch.nn.functional.scaled_dot_product_attention
    half = (torch.bfloat16, torch.float16)
    bias = torch.linspace(-1, 1, N).to(DEVICE)
    options: dict[str, dict[str, Any]] = {"": {}, " causal": {"is_causal": True}, " scale": {"scale": 0.3}}
    for backend in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
        kind = getattr(attention.SDPBackend, backend, None)
        for dtype in (torch.float32, *half):
            for name, given in options.items():

                def call(q: Any, k: Any, v: Any, kind: Any = kind, given: Any = given) -> Any:
                    with attention.sdpa_kernel(kind):
                        return sdpa(q, k, v, **given)

                yield f"{backend}{name}", dtype, call, vectors(dtype)
                if name == " causal":
                    yield f"{backend} d 36 (padded)", dtype, call, vectors(dtype, d=36)
        for dtype in (torch.float32, *half):

            def masked(q: Any, k: Any, v: Any, kind: Any = kind) -> Any:
                with attention.sdpa_kernel(kind):
                    return sdpa(q, k, v, attn_mask=bias.to(q.dtype).expand(B, H, N, N))

            yield f"{backend} bias", dtype, masked, vectors(dtype)

    def grouped(q: Any, k: Any, v: Any) -> Any:
        return sdpa(q, k, v, is_causal=True, enable_gqa=True)

    for dtype in (torch.float32, *half):
        yield "grouped", dtype, grouped, vectors(dtype, 2)
        yield "eager", dtype, eager, vectors(dtype)
    yield from packages(half)


def eager(q: Any, k: Any, v: Any) -> Any:
    """Attention written out."""
    hidden = torch.ones(N, N, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax((q @ k.transpose(-1, -2) * 0.125).masked_fill(hidden, -torch.inf), -1) @ v


def packages(half: tuple[Any, ...]) -> Iterator[Case]:
    """Yield the kernels of packages that are installed."""
    if importlib.util.find_spec("flash_attn") is not None:
        flash: Any = importlib.import_module("flash_attn")
        for dtype in half:
            tensors = vectors(dtype, tokens_first=True)
            yield "flash_attn", dtype, flash.flash_attn_func, tensors

            def causal(q: Any, k: Any, v: Any) -> Any:
                return flash.flash_attn_func(q, k, v, causal=True, window_size=(63, 0), softcap=20.0)

            yield "flash_attn window, soft-cap", dtype, causal, tensors
    if importlib.util.find_spec("xformers") is not None:
        ops: Any = importlib.import_module("xformers.ops")
        for dtype in half:
            yield "xformers", dtype, ops.memory_efficient_attention, vectors(dtype, tokens_first=True)
    flex: Any = importlib.import_module("torch.nn.attention.flex_attention")

    def flexible(q: Any, k: Any, v: Any) -> Any:
        return flex.flex_attention(q, k, v, score_mod=causal_score)

    for dtype in (torch.float32, *half):
        yield "flex", dtype, flexible, vectors(dtype)


def causal_score(score: Any, _: Any, __: Any, i: Any, j: Any) -> Any:
    """Hide later keys."""
    return torch.where(i >= j, score, -float("inf"))


def main() -> None:
    """Print a row for each kernel and number format."""
    api = recorder()
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if DEVICE == 'cuda' else 'no GPU'}")
    print(f"{'kernel':34}{'format':10}{'seen':5}{'same':5}{'scale':>9}{'d_k':>5}{'causal':>8}{'residual':>10}  notes")
    for name, dtype, function, tensors in cases():
        shown = f"{name:34}{str(dtype).removeprefix('torch.'):10}"
        try:
            with torch.no_grad():
                expected = function(*tensors)
        except Exception as error:
            print(f"{shown}not available: {str(error).splitlines()[0][:70]}")
            continue
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            found_by = api.Recorder(api.Options(f"{folder}/a.safetensors", values=True))
            found_by.start_here()
            found = function(*tensors)
            found_by.close()
        same = torch.equal(expected, found)
        layers = found_by.session.layers
        if not layers:
            print(f"{shown}{'no':5}{'yes' if same else 'NO':5}{found_by.summary.splitlines()[-1][:90]}")
            continue
        layer = layers[0]
        part = layer.parts[0]
        factors = [factor or 1.0 for factor in layer.prescaled]
        causal = "yes" if part.visible.offset is not None else "no"
        window = f" window {part.visible.window}" if part.visible.window else ""
        cap = f" cap {layer.softcap:g}" if layer.softcap else ""
        lse = "" if part.lse is not None else " NO LSE"
        sure = "" if layer.exact else " NOT EXACT"
        print(
            f"{shown}{'yes':5}{'yes' if same else 'NO':5}{layer.scale * factors[0] * factors[1]:9.4f}"
            f"{layer.k[0].shape[-1]:5}{causal:>8}{layer.residual:10.1e}  "
            f"{layer.checked}{window}{cap}{lse}{sure} {'; '.join(layer.notes)[:60]}"
        )


if __name__ == "__main__":
    main()
