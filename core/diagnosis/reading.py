"""Read a head of a capture as the subject of a diagnosis."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..attention.visibility import Visibility
from ..captures.capture import Layer, StatedAttention, values_of
from ..captures.head import CaptureFile, HeadData, read_evidence, read_finite_queries, read_head, read_once
from ..message import message, plain
from .configuration import Configuration, Growth, configuration_of, expecting
from .fitting.evidence import unit
from .multipliers import deciding
from .subject import Evidence, Indices, KeysAndValues, Kind, StatedFacts, Subject

_MOST = 1 << 19  # scores of a subject; a larger head is represented by some of its rows
_MOST_TEXTS = 8
_FEW = 32  # numbers from which their format is told


def format_of(values: npt.NDArray[Any], stored: str) -> str:
    """Return the number format that values were rounded to: bfloat16, which NumPy lacks, is often saved as float32.

    Of such numbers the 16 low bits are 0, and the lowest of the others is 1 in half of them; in whole numbers and
    powers of two it is not.
    """
    if stored != "float32":
        return stored
    bits = np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
    bits = bits[bits != 0]
    if len(bits) < _FEW or (bits & 0xFFFF).any() or np.count_nonzero(bits & 0x10000) < len(bits) // 4:
        return stored
    return "bfloat16"


def file_configuration(capture: CaptureFile) -> Configuration | None:
    """Return what the file says of the model, if anything; raise InputError if it has a value that makes no sense."""
    where = message("{path}: metadata 'config'", path=plain(capture.path))
    config = None if capture.config is None else configuration_of(capture.config, where)
    return expecting(capture.expect, config)


def read_subject(
    capture: CaptureFile, layer: Layer, head: int, own: Configuration | None, given: Configuration | None
) -> Subject:
    """Return a head with its evidence. `own` is the file's configuration, `given` the user's.

    What the file does not say of soft-cap and window is taken from `given`, and of what was recorded, from `own`.
    Raise CaptureError if the head cannot be read.
    """
    own, given = (None if each is None else each.of(layer.name) for each in (own, given))
    head_data = read_head(capture, layer, head)
    texts = slice(0, min(layer.batch, _MOST_TEXTS))
    rows = _rows(layer, texts.stop)
    whole = rows == slice(0, layer.queries, 1)
    shape = (texts.stop, len(range(*rows.indices(layer.queries))), layer.keys)
    terms = head_data.terms(texts, rows)
    seen = None if terms.hidden is None else ~terms.hidden
    biases = [np.asarray(bias, np.float64) for bias in terms.biases]
    positions = head_data.positions[rows].astype(np.intp)
    scale, row_scales = _scale(head_data, layer, texts, rows)
    recorded = row_scales if layer.observed else None  # of scores: not an expectation, but as if inside q
    observed = layer.observed and scale is not None
    is_stated = (scale, observed) == (layer.scale, layer.observed)
    stated = layer if is_stated else replace(layer, scale=scale, observed=observed)
    facts = StatedFacts(
        **values_of(StatedAttention, stated),
        d_k=layer.d_k,
        prescaled=layer.own_factor,
        inside=layer.inside,
        unknown_factor=layer.unknown_factor or (layer.observed and _lost_queries(head_data, texts, rows, positions)),
        not_finite=_scores_not_finite(layer, head),
        lost=None if seen is None else _lost_rows(capture, layer, head, seen, texts, rows),
        sink=head_data.sink,
        window=None if layer.window is None or layer.window[0] is None else layer.window[0] + 1,
        layer=layer.index,
        others=tuple(
            (other.index, other.applied)
            for other in (capture.layers if layer.observed else ())
            if other.position != layer.position and other.kind == layer.kind and other.applied is not None
        ),
        head=head,
        heads=layer.heads,
        kv_heads=layer.kv_heads,
        d_model=capture.d_model,
        keys=layer.keys,
        n_heads=capture.n_heads,
        config=given or own,
    )
    present = _present(head_data, texts)
    config = deciding(facts, given)
    growth = None if config is None else config.growth_in(layer.index)
    if growth is not None and growth.factor(layer.keys - 1) != 1:
        facts = replace(facts, unknown_positions=_unknown_positions(layer, growth, present))
    factors = _row_factors(head_data, layer, texts, rows)
    if recorded is not None:
        factors, row_scales = recorded if factors is None else recorded * factors, None
    if config is None and factors is not None and (facts.observed or facts.scale is None):
        facts = replace(facts, row_factors=(float(factors.min()), float(factors.max())))
    elif config is not None and (growth is not None or factors is not None):
        grown = (
            None if growth is None else np.array([growth.factor(int(position)) for position in positions], np.float64)
        )
        row_scales = _relative(grown, factors, (texts.stop, len(positions)), layer.dtype)
        facts = replace(facts, same_rows=_same_rows(growth, factors))
    q, k = head_data.q[texts, rows], head_data.k[texts]
    format, of_k = format_of(q, layer.dtype), format_of(k, layer.k_dtype or layer.dtype)
    if layer.k_dtype is None and format != of_k:
        format = of_k = layer.dtype
    key_head = head // (layer.heads // layer.kv_heads)
    k = read_once(capture, "k64", layer, key_head, lambda: head_data.k[texts].astype(np.float64))
    evidence = _evidence(capture, layer, head, texts, rows, facts.judges_outputs)
    q = q.astype(np.float64)
    subject = Subject(
        q=q if recorded is None else q * recorded[..., np.newaxis],
        k=k,
        format=format,
        k_format=of_k if of_k != format else None,
        facts=facts,
        evidence=evidence,
        positions=positions,
        seen=seen,
        present=present,
        bias=np.broadcast_to(sum(biases), shape) if biases else None,
        row_scales=row_scales,
        shift=layer.keys - layer.queries if layer.causal is not None and layer.rows is None else 0,
        whole=whole,
        tiled=_tiled(capture, layer, head, texts, any(each.v is not None for each in evidence)),
    )
    said = own if given is None and layer.observed else given  # what a recorder saw is not what was intended
    return subject if said is None else _completed(subject, said, layer)


def read_for_comparison(capture: CaptureFile, layer: Layer, head: int) -> Subject:
    """Return a head as its file states it, also if that was recorded: the other file says what was intended."""
    own = file_configuration(replace(capture, expect=None))
    return read_subject(capture, replace(layer, observed=False), head, own, None)


def _completed(subject: Subject, given: Configuration, layer: Layer) -> Subject:
    """Return the subject with what a configuration says and the file does not."""
    facts = subject.facts
    if given.softcap is not None and (facts.softcap is None or layer.observed):
        facts = replace(facts, softcap=given.softcap)
    window = given.window_of(layer.index)
    keys = layer.keys
    if facts.window is not None or window is None or window >= keys or layer.causal is None:
        return replace(subject, facts=facts)
    near = Visibility(keys, subject.positions, before=window - 1).of(slice(None), slice(None))
    seen = np.broadcast_to(near, subject.scores.shape) if subject.seen is None else subject.seen & near
    return replace(subject, facts=replace(facts, window=window), seen=seen)


def _rows(layer: Layer, texts: int) -> slice:
    """Return all rows, or evenly spread ones to the last."""
    most = max(16, _MOST // (texts * layer.keys))
    step = -(-layer.queries // most)
    return slice((layer.queries - 1) % step, layer.queries, step)


def _scale(data: HeadData, layer: Layer, texts: slice, rows: slice) -> tuple[float | None, FloatArray | None]:
    """Return the file's multiplier, and those of rows relative to it if they differ."""
    if data.scale is None or isinstance(data.scale, float):
        return data.scale, None
    scales = np.broadcast_to(data.scale, (layer.batch, layer.queries))[texts, rows].astype(np.float64)
    typical = float(np.median(scales))
    return typical, None if (scales == typical).all() else scales / typical


def _row_factors(data: HeadData, layer: Layer, texts: slice, rows: slice) -> FloatArray | None:
    """Return the factors inside queries, [texts, rows]; None if the file has none."""
    if data.row_factors is None:
        return None
    return np.broadcast_to(data.row_factors, (layer.batch, layer.queries))[texts, rows]


def _relative(
    expected: FloatArray | None, inside: FloatArray | None, shape: tuple[int, int], format: str
) -> FloatArray | None:
    """Return the expected multipliers of rows [rows] over the factors inside q; None if all are 1.

    Both are rounded to the format of q, so that what is nearer to 1 is 1.
    """
    ratio = np.ones(shape) if expected is None else np.broadcast_to(expected, shape)
    ratio = ratio if inside is None else ratio / inside
    ratio = np.where(np.abs(ratio - 1) <= max(4 * unit(format), 1e-5), 1.0, ratio)
    return None if bool((ratio == 1).all()) else ratio


def _same_rows(growth: Growth | None, inside: FloatArray | None) -> str:
    """Return what it means if the scores as stored have the same multiplier in all rows."""
    said = "" if growth is None else f"× {growth.formula} ({growth.key})"
    if inside is None:
        return message("the multiplier is the same in all rows, and the configuration says {said}", said=said)
    least, most = float(inside.min()), float(inside.max())
    if growth is None:
        words = "queries were multiplied by {least:.4g} to {most:.4g}, which this layer is not expected to do"
        return message(words, least=least, most=most)
    words = "queries were multiplied by {least:.4g} to {most:.4g}, and the configuration says {said}"
    return message(words, least=least, most=most, said=said)


def _unknown_positions(layer: Layer, growth: Growth, present: BoolArray | None) -> str:
    """Return why the factors of a layer's queries cannot be told; empty if they can."""
    if growth.layers and not layer.numbered:
        return message("the file does not say the number of the layer, by which {key} counts", key=growth.key)
    if not layer.of_one_text:
        return message("the file does not say where queries stand, by which {key} counts", key=growth.key)
    if present is not None and not bool(present[:, 0].all()):
        return message("texts are padded on the left, and {key} counts positions", key=growth.key)
    return ""


def _lost_queries(data: HeadData, texts: slice, rows: slice, positions: Indices) -> bool:
    """Return whether tokens have keys, but queries of 0: each row then has its own factor, which is unknown."""
    keys = np.minimum(positions, data.k.shape[1] - 1)
    return bool((data.k[texts][:, keys].any(axis=-1) & ~data.q[texts, rows].any(axis=-1)).any())


def _present(data: HeadData, texts: slice) -> BoolArray | None:
    """Return the keys of tokens rather than padding, [texts, keys]: those that the mask lets some query see."""
    if data.visibility is None or data.visibility.mask is None:
        return None
    mask = data.visibility.mask
    of_texts = mask if len(mask) == 1 else mask[texts]
    return np.broadcast_to(np.any(of_texts, axis=1, keepdims=True), (texts.stop, 1, of_texts.shape[2]))[:, 0]


def _tiled(capture: CaptureFile, layer: Layer, head: int, texts: slice, values: bool) -> KeysAndValues | None:
    """Return what reads the keys and values that the head would have with tiled instead of repeated key heads."""
    group = layer.heads // layer.kv_heads
    other = head % layer.kv_heads
    if other == head // group:
        return None

    @cache
    def read() -> tuple[FloatArray, FloatArray | None]:
        k = read_head(capture, layer, other * group).k[texts].astype(np.float64)
        v = read_evidence(capture, layer, other * group, "v") if values else None
        return k, None if v is None else v[texts]

    return read


def _scores_not_finite(layer: Layer, head: int) -> tuple[int, int] | None:
    """Return how many scores of the layer were not finite, and of how many, if some of this head were not."""
    if not layer.not_finite or not layer.not_finite[head][0]:
        return None
    return sum(bad for bad, _ in layer.not_finite), sum(count for _, count in layer.not_finite)


def _lost_rows(
    capture: CaptureFile, layer: Layer, head: int, seen: BoolArray, texts: slice, rows: slice
) -> tuple[int, int, str] | None:
    """Return how many queries see no key and are NaN in the next layer, of how many, and the words for that layer."""
    blind = ~seen.any(axis=-1)
    later = (
        later
        for later in capture.layers[layer.position + 1 :]
        if later.path == layer.path and later.kind == layer.kind
    )
    if not blind.any() or (after := next(later, None)) is None or head >= after.heads:
        return None
    if (after.batch, after.queries) != (layer.batch, layer.queries):
        return None
    lost = blind & ~read_finite_queries(capture, after, head)[texts, rows]
    return (int(lost.sum()), lost.size, after.place) if lost.any() else None


def _evidence(
    capture: CaptureFile, layer: Layer, head: int, texts: slice, rows: slice, outputs: bool
) -> tuple[Evidence, ...]:
    """Return what the file has, the most precise first, o only with `outputs`.

    Raise NotFiniteError if values are not finite.
    """
    stored = capture.stored[layer.position].evidence
    formats = {role: located.array.dtype for role, located in stored.items()}
    evidence: list[Evidence] = []
    kinds: tuple[Kind, ...] = ("lse", "weights", "o")
    for kind in kinds:
        if kind not in layer.evidence or (kind == "o" and ("v" not in layer.evidence or not outputs)):
            continue
        values = read_evidence(capture, layer, head, kind)
        v = read_evidence(capture, layer, head, "v") if kind == "o" else None
        assert values is not None
        format, of_v = format_of(values, formats[kind]), formats.get("v", "float32")
        if v is not None:
            v, of_v = v[texts], format_of(v, of_v)
        values = values / layer.output_factor if kind == "o" else values
        evidence.append(Evidence(kind, values[texts, rows], format, v, of_v))
    return tuple(evidence)
