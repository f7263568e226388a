"""The program of an attention layer's cost: plain Python, the same for NumPy and PyTorch."""

from __future__ import annotations

from ...attention.cost import Cost, Layer
from .program import Piece, assembled, expected

_FLOPS = """\
def flops(tokens, pairs, key, value):  # two for each multiply-add
    times = 2 * layers * batch
    return times * (tokens * weights + heads * pairs * (key + value))"""


def cost_code(cost: Cost, command: str) -> str:
    """Return the program that prints parameters, the KV cache and FLOPs."""
    layer = cost.layer
    values = {"d_model": layer.d_model, "heads": layer.heads, "kv_heads": layer.key_heads}
    values |= {"d_k": layer.width, "d_v": layer.value_width}
    if layer.kv_latent:
        del values["kv_heads"]
        values |= {"kv_latent": layer.kv_latent, "rotary": layer.rotary}
    if layer.q_latent:
        values["q_latent"] = layer.q_latent
    use = {"layers": layer.layers, "context": layer.context, "batch": layer.batch}
    use["number_bytes"] = layer.number_bytes
    biases = sum(matrix.bias for matrix in cost.matrices)
    pairs = "context * (context + 1) // 2  # the causal mask" if layer.mask == "causal" else "context**2"
    cached = "kv_latent + rotary" if layer.kv_latent else "kv_heads * (d_k + d_v)"
    absorbed = "kv_latent + rotary, kv_latent" if layer.kv_latent else "d_k, d_v"
    lines = [
        *(f"{', '.join(each)} = {', '.join(map(str, each.values()))}" for each in (values, use)),
        "matrices = {",
        *(f'    "{name}": {shape},' for name, shape in _shapes(layer).items()),
        "}",
        "weights = sum(rows * columns for rows, columns in matrices.values())",
        f"parameters = weights + {biases}  # biases" if biases else "parameters = weights",
        f"pairs = {pairs}",
    ]
    figures = {
        "parameters of a layer": ("parameters", cost.parameters),
        "parameters": ("layers * parameters", cost.all_parameters),
        "KV cache of a token": (f"layers * number_bytes * ({cached})", cost.cache_per_token),
        "KV cache": (f"layers * number_bytes * ({cached}) * context * batch", cost.cache),
        "FLOPs of the next token": (f"flops(1, context, {absorbed})", cost.next_token.total),
        "FLOPs of the context": ("flops(context, pairs, d_k, d_v)", cost.whole_context.total),
    }
    prints = [f'print("{name:25}", {text})' for name, (text, _) in figures.items()]
    pieces = [Piece("\n".join(lines)), Piece(_FLOPS, defines=True), Piece("\n".join(prints))]
    rows = {name: [str(value)] for name, (_, value) in figures.items()}
    return assembled([command], [pieces], expected(("",), rows))


def _shapes(layer: Layer) -> dict[str, str]:
    """Return the rows and columns of each matrix."""
    shapes = {"W_q": "(d_model, heads * d_k)"}
    if layer.q_latent:
        shapes = {"W_dq": "(d_model, q_latent)", "W_uq": "(q_latent, heads * d_k)"}
    if layer.kv_latent:
        shapes["W_dkv"] = "(d_model, kv_latent)"
        if layer.rotary:
            shapes["W_kr"] = "(d_model, rotary)"
        shapes |= {"W_uk": "(kv_latent, heads * (d_k - rotary))", "W_uv": "(kv_latent, heads * d_v)"}
    else:
        shapes |= {"W_k": "(d_model, kv_heads * d_k)", "W_v": "(d_model, kv_heads * d_v)"}
    return shapes | {"W_o": "(heads * d_v, d_model)"}
