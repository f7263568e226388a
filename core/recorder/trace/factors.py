"""Factors inside queries and keys: numbers, norms and their gains, rotations, and what is not one known number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .notes import Notebook, VectorNote, elements, view_of

_FEW = 1 << 16  # values that are compared with each other
_PARTS = 8  # of a storage whose factors are told apart
_ROWS = 8  # the fewest whose factors grow or fall with the position: those of a norm do so by chance once in 8!/2


def scale_vectors(
    notes: Notebook, a: torch.Tensor, b: Any, number: float | None, divide: bool, out: torch.Tensor
) -> None:
    """Multiply possible queries or keys: by a number, by the reciprocal of their lengths, or by unknown factors."""
    if not out.numel():
        return
    note = notes.vectors(a)
    gained = note.normed and note.times is None and not divide  # by the norm's gain, whatever that is
    if number is None and not (gained and b.shape[-1] > 1):
        number = _one_number(b)
    if number is not None:
        number = 1.0 if number == -1 else number
        factor = None
        if note.factor is not None and number != 0:
            factor = note.factor / number if divide else note.factor * number
        found = replace(note, factor=factor)
    elif a.is_complex() or b.is_complex():
        found = replace(note, factor=_product(note.known, None if divide else _one_size(b.abs())))
    elif a.shape[-1] > 1 and (b.shape[-1] == 1 or b.stride(-1) == 0):
        found = note if _zeros_and_ones(b) else _by_row(note, a, b, divide)
        found = VectorNote(normed=True, width=note.width) if _is_norm(a, b, divide) else found
    elif divide:
        found = VectorNote(None, width=note.width)
    else:
        found = VectorNote(note.known, width=note.width, normed=gained, times=b, amplitude=notes.factor(b))
    describe(notes, out, replace(found, parameter=False))


def describe(notes: Notebook, out: torch.Tensor, found: VectorNote) -> None:
    """Note what is known of a result, which may be a part of a storage that was changed in place."""
    note = notes.find(out)
    if out.numel() < elements(out):
        if found.known != notes.factor(out):
            note = note if isinstance(note, VectorNote) else VectorNote()
            parts = {**dict(note.parts), view_of(out): found.known}
            notes.put(out, replace(note, parts=tuple(parts.items())) if len(parts) <= _PARTS else VectorNote(None))
    elif (
        note is not None
        or found.factor != 1
        or found.width
        or found.normed
        or found.times is not None
        or found.by_row is not None
    ):
        notes.put(out, found)


def _by_row(note: VectorNote, a: torch.Tensor, b: torch.Tensor, divide: bool) -> VectorNote:
    """Return vectors after each row was multiplied by its own number, if this depends on the position alone.

    A temperature of the position grows or falls along the tokens. A norm, or a gate that is computed from the
    vectors, does not: such factors are not known.
    """
    numbers = b[..., :1].detach().float()
    numbers = numbers.reciprocal() if divide else numbers
    if note.beside_rows is None or numbers.numel() > _FEW:
        return VectorNote(None, width=note.width)
    if not bool((torch.isfinite(numbers) & (numbers > 0)).all()):
        return VectorNote(None, width=note.width)
    steps = [numbers.diff(dim=axis) for axis in range(numbers.dim()) if numbers.shape[axis] >= _ROWS]
    if not any(bool((step >= 0).all() | (step <= 0).all()) and bool(step.any()) for step in steps):
        return VectorNote(None, width=note.width)
    if torch.broadcast_shapes(a.shape, b.shape) != a.shape:
        return VectorNote(None, width=note.width)
    before = numbers if note.by_row is None else note.by_row * numbers
    return replace(note, by_row=before.expand(a.shape))


def _product(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a * b


def _one_number(b: torch.Tensor) -> float | None:
    """Return the number that all values of a small tensor are; None if they differ, or are 0."""
    if b.numel() > _FEW or b.is_complex():
        return None
    first = b.reshape(-1)[0]
    return float(first) if bool((b == first).all()) and bool(first != 0) else None


def _one_size(values: torch.Tensor) -> float | None:
    """Return the number that all values are to rounding, 1 where it is near; None if they differ."""
    mean = float(values.mean())
    if not float((values - mean).abs().max()) <= 0.01 * mean:
        return None
    return 1.0 if abs(mean - 1) < 2e-3 else mean


def _zeros_and_ones(b: torch.Tensor) -> bool:
    return b.numel() <= _FEW and bool(((b == 0) | (b == 1)).all())


def _is_norm(a: torch.Tensor, b: torch.Tensor, divide: bool) -> bool:
    """Return whether b are the lengths of rows of a, or their root mean squares, to a rounding and an epsilon."""
    width = a.shape[-1]
    squares = a.float().square().mean(-1, keepdim=True)
    lengths = b[..., :1].float().square()
    lengths = lengths if divide else lengths.reciprocal()
    for times in (1, width, width / (width - 1)):
        left = lengths - times * squares
        alike = ((left - left.mean()).abs() <= 0.02 * lengths) & (left.abs() <= 0.02 * lengths + 1e-3)
        if bool((alike | (squares == 0)).all()):
            return True
    return False


def factor_of_sum(a: VectorNote, b: VectorNote) -> float | None:
    """Return the factor of a sum of vectors: that of both, with the amplitude of a rotation's cosines and sines."""
    if a.by_row is not None or b.by_row is not None:
        return None
    if a.times is None and b.times is None:
        return a.factor if a.factor == b.factor else None
    one = a.times if a.times is not None else b.times
    assert one is not None
    cos, sin = (torch.ones_like(one) if each.times is None else each.times for each in (a, b))
    if a.factor is not None and a.factor == b.factor and cos.shape == sin.shape:
        amplitude = _one_size((cos.float().square() + sin.float().square()).sqrt())
        if amplitude is not None:
            said = a.amplitude if a.times is not None else b.amplitude
            exact = said is not None and abs(said / amplitude - 1) < 0.01
            return a.factor * (said if exact and said is not None else amplitude)
    return a.known if a.known == b.known else None
