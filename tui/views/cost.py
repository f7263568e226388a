"""The cost of a layer as lines: its shape, its matrices, its cache and its operations, each with its formula."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.attention.cost import Cost
from ...core.attention.formats import FORMATS
from ...core.attention.presets import Preset
from .glyphs import Glyphs
from .lines import Line, Role, Span, wrapped
from .numbers import binary, metric

NAME = 14  # cells of a row's name


def cost_lines(cost: Cost, width: int, glyphs: Glyphs, preset: Preset | None = None) -> list[Line]:
    """The whole cost. Sentences are wrapped to the width; tables are about 60 cells wide, whatever it is."""
    lines = [*layer_lines(cost, width, glyphs, preset), ()]
    for table in (matrix_lines(cost, glyphs), cache_lines(cost, glyphs), flops_lines(cost, glyphs)):
        lines += [*table, ()]
    return lines + remark_lines(cost, width, glyphs, preset)


def layer_lines(cost: Cost, width: int, glyphs: Glyphs, preset: Preset | None = None) -> list[Line]:
    """What is counted: the model, how heads share keys and values, and the d_k that follows."""
    layer = cost.layer
    heads = {
        "multi-head": f"{layer.heads} heads, each with its own keys and values",
        "grouped-query": f"{layer.heads} heads share {layer.key_heads} heads of keys and values",
        "multi-query": f"{layer.heads} heads share one head of keys and values",
    }[layer.kind]
    share = f"d_model/heads = {layer.d_model}/{layer.heads}"
    if layer.width * layer.heads == layer.d_model:
        d_k = f"d_k {layer.width} = {share}"
    else:
        d_k = f"d_k {layer.width}, where {share} = {layer.d_model / layer.heads:.4g}"
    lines: list[Line] = []
    if preset is not None:
        lines += wrapped(glyphs.say(preset.title(layer)), width, "heading")
        lines += wrapped(glyphs.say(f"Source: {preset.source}."), width, "dim")
    lines += wrapped(glyphs.say(f"{layer.kind.capitalize()} attention: {heads}."), width)
    return lines + wrapped(glyphs.say(f"{d_k}; 1/√d_k multiplies scores by {layer.width**-0.5:.4g}."), width)


def matrix_lines(cost: Cost, glyphs: Glyphs) -> list[Line]:
    """The parameters, matrix by matrix."""
    layers = cost.layer.layers
    rows = [("parameters", "shape", "weights", "bias")]
    for m in cost.matrices:
        bias = f"{m.bias:,}" if m.bias else "—"
        rows.append((f" {m.name}", f"{m.rows} × {m.columns}", f"{m.weights:,}", bias))
    rows.append((" a layer", "", f"{cost.parameters:,}", ""))
    if layers > 1:
        rows.append((f" {layers} layers", "", f"{cost.all_parameters:,}", ""))
    return _table(rows, (15, 18, 12), glyphs)


def cache_lines(cost: Cost, glyphs: Glyphs) -> list[Line]:
    """Bytes of keys and values, for a token and for the context."""
    layer, times = cost.layer, cost.layer.heads // cost.layer.key_heads
    layers = f" × {layer.layers} layers" if layer.layers > 1 else ""
    texts = f" × {layer.batch} texts" if layer.batch > 1 else ""
    rows = [
        ("KV cache", f"2 × key heads × d_k × {FORMATS[layer.cache_format].word}", ""),
        (
            " a token",
            f"2 × {layer.key_heads} × {layer.width} × {layer.number_bytes} bytes{layers}",
            binary(cost.cache_per_token),
        ),
        (" the context", f"{layer.context} tokens{texts}", binary(cost.cache)),
    ]
    if times > 1:
        rows.append((" multi-head", f"would take {times} times as much", binary(cost.cache * times)))
    return _table(rows, (-34, 12), glyphs)


def flops_lines(cost: Cost, glyphs: Glyphs) -> list[Line]:
    """Operations for the next token and for all tokens of the context at once."""
    one, every = cost.next_token, cost.whole_context
    rows = [
        ("FLOPs", "", "next token", "all tokens"),
        (" projections", "2 × weights × tokens", metric(one.projections), metric(every.projections)),
        (" q·k", "2 × heads × d_k × pairs", metric(one.scores), metric(every.scores)),
        (" weights·v", "2 × heads × d_k × pairs", metric(one.weighted_sum), metric(every.weighted_sum)),
        (" together", "", metric(one.total), metric(every.total)),
    ]
    return _table(rows, (-23, 11, 12), glyphs)


def remark_lines(cost: Cost, width: int, glyphs: Glyphs, preset: Preset | None = None) -> list[Line]:
    """What is counted, and how."""
    layer, n = cost.layer, cost.layer.context
    scope = f"{layer.layers} layers" if layer.layers > 1 else "one layer"
    scope += f" and {layer.batch} texts" if layer.batch > 1 else ""
    if layer.mask == "causal":
        pairs = f"all tokens make {n} × {n + 1}/2, since a causal mask hides the rest. "
        pairs += "A kernel that multiplies the hidden ones too does nearly twice as much."
    else:
        pairs = f"all tokens make {n}²."
    texts = [
        f"FLOPs are of {scope}; a multiplication and the addition after it are two. Biases, norms, rotary embeddings "
        "and softmax are not counted.",
        f"The next token makes {n} pairs, with itself and each token before it; {pairs}",
    ]
    if preset is not None and preset.note:
        texts.append(f"{preset.note}.")
    return [line for text in texts for line in wrapped(glyphs.say(text), width, "dim")]


def _table(rows: Sequence[Sequence[str]], widths: Sequence[int], glyphs: Glyphs) -> list[Line]:
    """A heading and rows under it. Columns are at least so wide; one of negative width is a formula, at the left."""
    said = [[glyphs.say(cell) for cell in row] for row in rows]
    lines: list[Line] = []
    for number, row in enumerate(said):
        name: Role = "heading" if number == 0 else "label"
        spans: list[Span] = [(row[0].ljust(NAME), name)]
        for at, least in enumerate(widths, 1):
            cells = max(abs(least), max(len(other[at]) for other in said) + (least > 0))
            right: Role = "dim" if number == 0 else "text"
            spans.append((row[at].ljust(cells), "dim") if least < 0 else (row[at].rjust(cells), right))
        lines.append(tuple(spans))
    return lines
