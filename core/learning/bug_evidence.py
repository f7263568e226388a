"""Make the capture of a bug, look at its weights, and have them diagnosed."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.computation import Computation
from ..attention.visibility import Bias, Visibility
from ..captures.capture import sample_path
from ..captures.head import read_head
from ..captures.reader import open_capture
from ..diagnosis.reading import file_configuration, read_subject
from ..diagnosis.verdict import diagnose
from ..statistics.measurement import Estimate
from .bugs import D_K, SYMPTOMS, Bug, BugEvidence, Recipe
from .sources import Reading

_TOP = 0.1  # the share of scores that count as large


def examine_bug(bug: Bug, file: Path) -> BugEvidence:
    """Write the capture of a bug to a file, read it, and return what its head shows."""
    write_capture(bug, file)
    capture = open_capture(file)
    [layer] = capture.layers
    verdict = diagnose(read_subject(capture, layer, bug.head, file_configuration(capture), None))
    causes = [finding.cause for finding in verdict.findings]
    cause = "+".join(causes) if verdict.word == "cause" else verdict.word
    if len(causes) == 1 and not {*verdict.also}.isdisjoint(bug.choices):
        return BugEvidence(_symptoms(bug), "undecided", (*causes, *verdict.also), verdict.says)
    return BugEvidence(_symptoms(bug), cause, verdict.also, verdict.says)


def write_capture(bug: Bug, file: Path) -> None:
    """Write a capture whose metadata are what `bug.said` says and whose weights are what `bug.done` does."""
    q, k = _queries_and_keys(bug)
    layer: dict[str, object] = {
        "name": "layers.0.attn", "index": 0, "heads": bug.heads, "kv_heads": bug.kv_heads, "d_k": q.shape[-1],
        "scale": bug.multiplier(bug.said), "causal": bug.said.sees is not None, "scores": "float32",
    }  # fmt: skip
    if bug.said.softcap is not None:
        layer["softcap"] = bug.said.softcap
    metadata = {
        "schema": "attn-tui/qk-2", "model": f"find the bug: {bug.title}", "d_model": str(bug.d_model),
        "n_heads": str(bug.d_model // D_K), "layers": json.dumps([layer]),
    }  # fmt: skip
    weights = np.stack([_weights(bug, bug.done, head) for head in range(bug.heads)])
    tensors = {"q": q, "k": k, "weights": weights}
    write_safetensors(file, {f"layers.0.attn.{name}": array[np.newaxis] for name, array in tensors.items()}, metadata)


def write_safetensors(file: Path, tensors: Mapping[str, FloatArray], metadata: Mapping[str, str]) -> None:
    """Write arrays as float32 to a .safetensors file."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    parts: list[bytes] = []
    start = 0
    for name, array in tensors.items():
        data = np.ascontiguousarray(array, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [start, start + len(data)]}
        parts.append(data)
        start += len(data)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def _queries_and_keys(bug: Bug) -> tuple[FloatArray, FloatArray]:
    """Return q [heads, tokens, d_k] and k [kv_heads, tokens, d_k] of the sample's layer."""
    capture = open_capture(sample_path())
    layer = capture.layers[bug.layer]
    heads = [read_head(capture, layer, head) for head in range(bug.heads)]
    q, k = (np.stack([side[0] for side in sides]).astype(np.float32) for sides in
            ([head.q for head in heads], [head.k for head in heads[: bug.kv_heads]]))  # fmt: skip
    return q, k


def _computation(bug: Bug, how: Recipe, tokens: int) -> Computation:
    return Computation(
        swapped=how.swapped,
        tiled=how.tiled,
        multiplier=bug.multiplier(how),
        softcap=how.softcap,
        biases=(Bias(np.tril(np.ones((1, tokens, tokens)))),) if how.added else (),
        visibility=None if how.sees is None else Visibility(tokens, np.arange(tokens), after=how.sees),
    )


def _scores(bug: Bug, how: Recipe, head: int) -> FloatArray:
    """Return q·k of a head, [tokens, tokens], in float32."""
    q, k = _queries_and_keys(bug)
    key_head = _computation(bug, how, q.shape[1]).key_head(head, bug.heads, bug.kv_heads)
    one, other = (k[key_head], q[head]) if how.swapped else (q[head], k[key_head])
    return one @ other.T


def _weights(bug: Bug, how: Recipe, head: int) -> FloatArray:
    """Return the weights of a head as a recipe makes them, [tokens, tokens]."""
    scores = _scores(bug, how, head).astype(np.float64)[np.newaxis]
    c = _computation(bug, how, scores.shape[-1])
    terms = c.terms(scores.shape)
    return c.weights(c.logits(scores, terms), terms.hidden).weights[0].astype(np.float32)


def _symptoms(bug: Bug) -> dict[str, Reading]:
    """Return the symptoms of the head, as returned and as the file says."""
    scores = _scores(bug, bug.said, bug.head)
    returned, expected = (_of_weights(_weights(bug, how, bug.head), scores) for how in (bug.done, bug.said))
    return {name: Reading(Estimate(returned[name], None), expected[name]) for name in SYMPTOMS}


def _of_weights(p: FloatArray, scores: FloatArray) -> dict[str, float]:
    """Return the symptoms of weights, beside the scores of q and k as stored."""
    p = p.astype(np.float64)
    tokens = len(p)
    away = np.arange(tokens) - np.arange(tokens)[:, np.newaxis]
    logs = np.log(np.where(p > 0, p, 1))
    seen = np.count_nonzero(p, axis=-1)
    wide = seen > 1
    fraction = -(p * logs).sum(axis=-1)[wide] / np.log(seen[wide])
    usable = p > 1e-30
    slope, explained = _line(*(_within_rows(each, usable) for each in (scores, logs)))
    large = np.concatenate([_about_top(row, log, use) for row, log, use in zip(scores, logs, usable, strict=True)])
    return {
        "entropy": float(fraction.mean()),
        "largest": float(p.max(axis=-1).mean()),
        "later": float(np.where(away > 0, p, 0).sum(axis=-1).mean()),
        "beyond": float(np.where(away > 1, p, 0).sum(axis=-1).mean()),
        "slope": slope,
        "top": float(np.median(large)),
        "explained": explained,
    }


def _within_rows(values: FloatArray, usable: BoolArray) -> FloatArray:
    """Return the usable values of all rows, each about the mean of its row."""
    rows = [row[use] for row, use in zip(values, usable, strict=True) if use.any()]
    return np.concatenate([row - row.mean() for row in rows])


def _about_top(scores: FloatArray, logs: FloatArray, usable: BoolArray) -> FloatArray:
    """Return the slope of ln p from the scores of the top tenth to the row's largest, if it has two."""
    at = np.flatnonzero(usable)
    at = at[np.argsort(scores[at])][-math.ceil(_TOP * len(at)) :]
    rise = scores[at[-1]] - scores[at[0]] if len(at) else 0.0
    return np.array([(logs[at[-1]] - logs[at[0]]) / rise]) if rise > 0 else np.empty(0)


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Return the slope of the least-squares line through 0, and the share of the variance that it explains."""
    square = float(x @ x)
    slope = float(x @ y) / square if square else 0.0
    total = float(y @ y)
    return slope, slope * slope * square / total if total else 0.0
