"""Find out which layers, heads, texts and rows of two captures can be compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ...arrays import FloatArray
from ...captures.capture import CaptureContents, Layer
from ...captures.files import CaptureError
from ...captures.head import CaptureFile, read_head
from ...message import message
from ..groups import head_numbers_in_words
from ..subject import Subject, places, some_rows, spread_rows
from .results import HeadPair, Plan

Sameness: TypeAlias = Literal["same", "prefix", "different"]

_ROWS, _KEYS = 16, 256  # of a head's scores by which heads are recognised
_ALIKE = 0.9  # correlation from which a head at another place is taken for the same
_NAMED = 6  # layers in one capture only that are named
_LEAST_PREFIX = 8  # tokens


@dataclass(frozen=True)
class Common:
    """What two layers have in common: all tokens, the first `tokens`, or none."""

    sameness: Sameness
    texts: int = 0
    tokens: int = 0
    note: str | None = None


def plan(reference: CaptureFile, test: CaptureFile) -> Plan:
    """Return the heads to compare: layers with the same number and name, heads in the order of their scores."""
    layers, missing, notes = _layers(reference, test)
    pairs: list[HeadPair] = []
    for one, other in layers:
        common = common_tokens(reference, test, one, other)
        if common.note is not None:
            notes.append(common.note)
        matched = _heads(reference, test, one, other, common)
        moved = [message("{h} is {t}", h=h, t=t) for h, t in matched.items() if h != t]
        if moved:
            words = ", ".join(moved[:8]) + (", …" if len(moved) > 8 else "")
            notes.append(
                message(
                    "layer {index}: heads are matched by their scores: head {words} in the other capture",
                    index=one.index,
                    words=words,
                )
            )
        pairs += [HeadPair(one, h, other, t) for h, t in matched.items()]
        for heads, found, where in (
            (range(one.heads), set(matched), "the reference"),
            (range(other.heads), set(matched.values()), "the other capture"),
        ):
            alone = [h for h in heads if h not in found]
            if alone:
                missing.append(
                    message(
                        "layer {index}: only {where} has {alone}",
                        index=one.index,
                        where=where,
                        alone=head_numbers_in_words(alone),
                    )
                )
    return Plan(tuple(pairs), tuple(missing), tuple(dict.fromkeys(notes)))


def _layers(
    reference: CaptureContents, test: CaptureContents
) -> tuple[list[tuple[Layer, Layer]], list[str], list[str]]:
    """Return pairs of layers, sentences for those without a partner, and notes."""
    left = list(test.layers)
    pairs: list[tuple[Layer, Layer]] = []
    alone: list[Layer] = []
    for one in reference.layers:
        partner = next((layer for layer in left if (layer.index, layer.name) == (one.index, one.name)), None)
        partner = partner or next(
            (layer for layer in left if (layer.index, layer.cross) == (one.index, one.cross)), None
        )
        if partner is None:
            alone.append(one)
        else:
            left.remove(partner)
            pairs.append((one, partner))
    notes: list[str] = []
    if not pairs and len(alone) == len(left):
        notes.append("no layer has the same number in both captures; layers are compared in their order")
        pairs, alone, left = list(zip(alone, left, strict=True)), [], []
    missing = [_only("the reference", alone), _only("the other capture", left)]
    return pairs, [text for text in missing if text], notes


def _only(where: str, layers: Sequence[Layer]) -> str:
    """Return that only one capture has these layers; empty if there are none."""
    if not layers:
        return ""
    names = [f"{layer.index} ({layer.name})" for layer in layers]
    more = len(names) - _NAMED
    listed = ", ".join(names if more <= 1 else names[:_NAMED])
    if len(names) == 1:
        return message("only {where} has layer {layer}", where=where, layer=listed)
    if more > 1:
        return message("only {where} has layers {layers} and {more} more", where=where, layers=listed, more=more)
    return message("only {where} has layers {layers}", where=where, layers=listed)


def common_tokens(reference: CaptureContents, test: CaptureContents, one: Layer, other: Layer) -> Common:
    """Return which tokens two layers have in common, as far as their files say."""
    texts = min(one.batch, other.batch)
    size = message(
        "{batch} × {keys} keys in the reference, {other_batch} × {other_keys} in the other capture",
        batch=one.batch,
        keys=one.keys,
        other_batch=other.batch,
        other_keys=other.keys,
    )
    if reference.tokens is not None and test.tokens is not None:
        count = min(texts, len(reference.tokens), len(test.tokens))
        pairs = list(zip(reference.tokens[:count], test.tokens[:count], strict=True))
        if all(a == b for a, b in pairs) and one.keys == other.keys:
            fewer = (
                None
                if one.batch == other.batch
                else message("only the first {texts} texts are compared ({size})", texts=texts, size=size)
            )
            return Common("same", texts, one.keys, fewer)
        shared = min(_prefix(a, b) for a, b in pairs)
        causal = one.causal is not None and other.causal is not None and not one.cross
        if causal and shared >= _LEAST_PREFIX and one.rows is None and other.rows is None:
            note = message(
                "the texts share their first {shared} tokens: attention is causal, so these are compared",
                shared=shared,
            )
            return Common("prefix", count, shared, note)
        return _different("the tokens are different")
    if reference.text is not None and test.text is not None and reference.text[:texts] != test.text[:texts]:
        return _different("the texts are different")
    if one.keys != other.keys:
        return _different(message("the sizes are different ({size})", size=size))
    said = (reference.text is not None) + (test.text is not None)
    note = message("assuming both are of the same text: only one says so")
    if not said:
        note = message("assuming both are of the same text: neither file says so")
    return Common("same", texts, one.keys, None if said == 2 else note)


def _different(why: str) -> Common:
    return Common(
        "different",
        note=message(
            "{why}: only multipliers, soft-caps, sinks, the kinds of masks, and means over rows are compared", why=why
        ),
    )


def _prefix(a: Sequence[str], b: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _heads(reference: CaptureFile, test: CaptureFile, one: Layer, other: Layer, common: Common) -> dict[int, int]:
    """Return the head of the other layer for each head: at the same place, unless scores show another order."""
    both = range(min(one.heads, other.heads))
    if common.sameness == "different" or one.refusal or other.refusal:
        return {h: h for h in both}
    marks = [_signatures(capture, layer, common) for capture, layer in ((reference, one), (test, other))]
    if marks[0].shape[1] != marks[1].shape[1]:
        return {h: h for h in both}
    alike: FloatArray = marks[0] @ marks[1].T
    matched: dict[int, int] = {}
    for h in both:  # a head at its place stays there unless another one is clearly more like it
        if alike[h, h] >= max(float(alike[h].max()), float(alike[:, h].max())) - 1e-3:
            matched[h] = h
    free = [t for t in range(other.heads) if t not in matched.values()]
    left = [h for h in range(one.heads) if h not in matched]
    ranked = sorted(((float(alike[h, t]), h, t) for h in left for t in free), reverse=True)
    for correlation, h, t in ranked:
        if correlation >= _ALIKE and h not in matched and t not in matched.values():
            matched[h] = t
    free = [t for t in free if t not in matched.values()]
    left = [h for h in left if h not in matched]
    for h in [h for h in left if h in free]:
        matched[h] = h
        free.remove(h)
    left = [h for h in left if h not in matched]
    if one.heads == other.heads:
        matched |= dict(zip(left, free, strict=True))
    return dict(sorted(matched.items()))


def _signatures(capture: CaptureFile, layer: Layer, common: Common) -> FloatArray:
    """Return centred scores of some rows and keys of each head, normalised, [heads, scores]; 0 if not readable."""
    tokens = common.tokens
    keys = spread_rows(min(tokens, layer.keys), _KEYS)
    marks: list[FloatArray] = []
    size = 0
    for head in range(layer.heads):
        try:
            data = read_head(capture, layer, head)
        except CaptureError:
            marks.append(np.zeros(0))
            continue
        inside = np.flatnonzero(data.positions < tokens)
        rows = inside[spread_rows(len(inside), _ROWS)]
        scores = data.q[0, rows].astype(np.float64) @ data.k[0, keys].T.astype(np.float64)
        scores -= scores.mean(axis=-1, keepdims=True)
        flat: FloatArray = scores.ravel()
        size = flat.size
        length = math.sqrt(float(np.vdot(flat, flat)))
        marks.append(flat / length if length > 0 else flat)
    return np.stack([mark if mark.size else np.zeros(size) for mark in marks])


def aligned(
    one: Subject, other: Subject, layers: tuple[Layer, Layer], common: Common
) -> tuple[Subject, Subject] | None:
    """Return the two heads with only the texts, rows and keys that both have; None if there are none."""
    by_place = layers[0].rows is None and layers[1].rows is None and layers[0].queries == layers[1].queries
    if common.sameness == "different":
        return None
    texts = min(common.texts, one.q.shape[0], other.q.shape[0])
    if by_place and one.q.shape[1] == other.q.shape[1]:
        rows = (places(one.q.shape[1]), places(other.q.shape[1]))
    else:
        _, first, second = np.intersect1d(one.positions, other.positions, return_indices=True)
        rows = (first.astype(np.intp), second.astype(np.intp))
    if common.sameness == "prefix":
        inside = (one.positions[rows[0]] < common.tokens) & (other.positions[rows[1]] < common.tokens)
        rows = (rows[0][inside], rows[1][inside])
    if not len(rows[0]) or not texts:
        return None
    return some_rows(one, rows[0], texts, common.tokens), some_rows(other, rows[1], texts, common.tokens)
