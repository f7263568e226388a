"""What elementwise operations and copies do to scores, weights, and tensors that may become queries or keys.

Each rule gets the notes, the arguments of the operation by name, and its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

import torch

from ..layers.geometry import canonical_order, geometry_of, split_order
from ..layers.scores import NORM, Scores, ScoreStep
from .factors import describe, factor_of_sum, scale_vectors
from .notes import DropoutNote, Notebook, Products, VectorNote, WeightNote, elements
from .weights import altered, is_new, passed, reached, summed

Arguments = dict[str, Any]
OTHER_WEIGHTS = "weights that are not of queries and keys are added"  # as in ConViT
Rule = Callable[[Notebook, Arguments, Any], None]


def copied(notes: Notebook, given: Arguments, out: Any) -> None:
    """Pass everything on to a copy: another format, device or memory order."""
    source = next(iter(given.values()))
    note = notes.find(source)
    if note is None or not isinstance(out, torch.Tensor):
        return
    if isinstance(note, VectorNote):
        notes.put(out, notes.vectors(source))
    elif isinstance(note, (Scores, WeightNote)):
        pass_on(notes, source, out, note)


def pass_on(
    notes: Notebook, source: torch.Tensor, out: torch.Tensor, note: Scores | WeightNote, step: ScoreStep | None = None
) -> None:
    """Pass scores or weights on to a result that may have more dimensions than the source."""
    if isinstance(note, WeightNote):
        passed(notes, source, out, note)
        return
    found = split_order(source, note.geometry)
    if found is None and not note.lost and step is not None and _same_storage(source, out):
        _change_part(notes, source, note, step)
        return
    more = out.dim() - source.dim()
    if found is None or more < 0 or out.shape[more:] != source.shape or any(n != 1 for n in out.shape[:more]):
        lost = replace(note, lost=note.lost or "a reshaped or broadcast operation")
        if not note.lost and step is not None and step.operand is not None and out.shape == source.shape:
            step = replace(step, operand=step.operand.expand(out.shape))
            lost = replace(lost, geometry=geometry_of(out), steps=(step,), part_of=note)
        notes.put(out, lost)
        return
    order, keys = (*range(more), *(axis + more for axis in found[0])), found[1]
    note = replace(note, geometry=geometry_of(out, order, keys), dtype=_narrower(note.dtype, out.dtype))
    if step is not None:
        if step.operand is not None:
            step = replace(step, operand=step.operand.expand(out.shape).permute(order))
        note = note.then(step)
    notes.put(out, note)


def _change_part(notes: Notebook, part: torch.Tensor, note: Scores, step: ScoreStep) -> Scores:
    """Note and return that a part of scores changed in place: nothing is added to the rest, or replaced there."""
    geometry, operand = note.geometry, step.operand
    if step.kind not in ("add", "shift", "fill") or operand is None:
        found = replace(note, lost=note.lost or "an operation on a part of them")
        notes.put(part, found)
        return found
    whole = torch.zeros(elements(part), dtype=operand.dtype, device=part.device)
    whole.as_strided(part.shape, part.stride(), part.storage_offset()).copy_(operand)
    whole = whole.as_strided(geometry.sizes, geometry.strides, geometry.offset)
    found = note.then(replace(step, kind="fill" if step.kind == "fill" else "add", operand=whole))
    notes.put(part, found)
    return found


def moved(notes: Notebook, given: Arguments, out: Any) -> None:
    """Pass a factor on to the result of moving elements: gather, repeat, roll."""
    source = next(iter(given.values()))
    _set_factor(notes, out, notes.factor(source))
    lose(notes, "a rearrangement", given.values(), out)


def _set_factor(notes: Notebook, out: Any, factor: float | None, width: int | None = None) -> None:
    if isinstance(out, torch.Tensor) and (factor != 1.0 or width is not None):
        notes.put(out, VectorNote(factor, width=width))


def normed(notes: Notebook, given: Arguments, out: Any) -> None:
    """Note vectors that a norm without a gain returned: the gain may follow."""
    result = cast(Any, out[0] if isinstance(out, tuple) else out)
    if isinstance(notes.find(given["input"]), Scores):
        lose(notes, NORM, given.values(), result)
    elif given.get("weight") is None:
        notes.put(result, VectorNote(normed=True))


def negated(notes: Notebook, given: Arguments, out: Any) -> None:
    """Change the sign of scores; of vectors, it does not matter."""
    note = notes.find(given["self"])
    if isinstance(note, Scores):
        pass_on(notes, given["self"], out, note, ScoreStep("mul", -1.0))
    else:
        _set_factor(notes, out, notes.factor(given["self"]))


def written(notes: Notebook, given: Arguments, out: Any) -> None:
    """Pass a factor on to the tensor that others are written into, such as a cache."""
    target, source = given["self"], cast(Any, given.get("source", given.get("values", given.get("src"))))
    note, is_tensor = notes.find(source), isinstance(source, torch.Tensor)
    if is_tensor and _same_storage(source, target) and geometry_of(source) == geometry_of(target):
        return  # the end of x[...] += y: Python writes the view to itself
    whole = is_tensor and source.shape == target.shape and target.numel() == elements(target)
    if isinstance(note, (Scores, WeightNote)) and whole:
        pass_on(notes, source, target, note)
        return
    if isinstance(note, WeightNote):
        reached(note, "a copy into a part")
    if isinstance(note := notes.find(target), WeightNote):
        passed(notes, target, out, replace(note, changed=(*note.changed, "values written into a part of them")))
        return
    if isinstance(note, Scores):
        changed = notes.find(source)
        if isinstance(changed, Scores) and changed.part_of is note:
            for step in changed.steps:
                operand = None if step.operand is None else step.operand.reshape(target.shape)
                note = _change_part(notes, target, note, replace(step, operand=operand))
            return
        _replaced(notes, given, note, number_of(source))
        return
    factor = notes.factor(source)
    if out is target:
        describe(notes, target, VectorNote(factor))
    else:
        _set_factor(notes, out, factor if factor == notes.factor(target) else None)


def _replaced(notes: Notebook, given: Arguments, note: Scores, number: float | None) -> None:
    """Replace a part of scores by one number, such as that of hidden keys."""
    target, indices = given["self"], given.get("indices")
    mask = torch.zeros(target.shape, dtype=torch.bool, device=target.device)
    if indices is not None:
        true = torch.ones((), dtype=torch.bool, device=target.device)
        mask = torch.ops.aten.index_put(mask, indices, true)
    elif "index" not in given:
        mask = mask.logical_not()
    if number is None or "index" in given or given.get("accumulate"):
        notes.put(target, replace(note, lost=note.lost or "values written into a part of them"))
    else:
        pass_on(notes, target, target, note, ScoreStep("fill", number, mask))


def filled_whole(notes: Notebook, given: Arguments, out: Any) -> None:
    """Replace all values of a view."""
    note = notes.find(given["self"])
    if isinstance(note, Scores) and split_order(given["self"], note.geometry) is None:
        _replaced(notes, given, note, number_of(given["value"]))
    elif isinstance(note, WeightNote):
        notes.put(given["self"], replace(note, changed=(*note.changed, "fill")))
    else:
        notes.drop(given["self"])


def joined(notes: Notebook, given: Arguments, out: Any) -> None:
    """Join vectors that have the same factor, or columns of no key to scores."""
    tensors = [tensor for tensor in given["tensors"] if tensor.numel()]
    for place, tensor in enumerate(tensors):
        note = notes.find(tensor)
        if isinstance(note, Scores):
            _join_sinks(notes, note, tensors, place, given.get("dim", 0), out)
            return
    factors = {notes.factor(tensor) for tensor in tensors}
    widths = {notes.vectors(tensor).width for tensor in tensors}
    if factors:
        width = widths.pop() if len(widths) == 1 else None
        _set_factor(notes, out, factors.pop() if len(factors) == 1 else None, width)


def _join_sinks(
    notes: Notebook, note: Scores, tensors: list[torch.Tensor], place: int, dim: int, out: torch.Tensor
) -> None:
    """Columns joined to scores behind the last key are logits of no key."""
    scores = tensors[place]
    order = canonical_order(scores, note.geometry)
    if order is None or len(tensors) != 2 or place != 0 or dim % scores.dim() != order[-1]:
        notes.put(out, replace(note, lost="cat"))
        return
    columns = tensors[1]
    step = ScoreStep("sink", operand=columns.permute(order))
    notes.put(out, replace(note.then(step), geometry=geometry_of(out, order), sinks=columns.shape[order[-1]]))


def padded(notes: Notebook, given: Arguments, out: Any) -> None:
    """Remember the width of queries and keys that a kernel wants wider."""
    source, pad = given["self"], given["pad"]
    note = notes.find(source)
    if isinstance(note, (Scores, WeightNote)):
        lose(notes, "constant_pad_nd", given.values(), out)
    elif len(pad) == 2 and pad[0] == 0 and pad[1] > 0 and not given.get("value", 0):
        _set_factor(notes, out, notes.factor(source), source.shape[-1])
    else:
        _set_factor(notes, out, notes.factor(source))


def multiplied(notes: Notebook, given: Arguments, out: Any, divide: bool = False) -> None:
    """Multiply or divide scores, weights or vectors."""
    a, b = given["self"], given["other"]
    if not divide and isinstance(b, torch.Tensor) and out is not a:
        known = isinstance(notes.find(b), (Scores, WeightNote)) and not isinstance(
            notes.find(a), (Scores, WeightNote)
        )
        if known or (a.numel() < b.numel() and not isinstance(notes.find(a), (Scores, WeightNote))):
            a, b = b, a
    note, number = notes.find(a), number_of(b)
    if isinstance(note, DropoutNote) and number is not None:
        notes.put(out, note)
    elif isinstance(note, Scores) and note.lost and number is None:  # such as cosines of angles that are a product
        if not divide and out is not a and b.numel() >= a.numel():
            a, b = b, a
        scale_vectors(notes, a, b, number, divide, out)
    elif isinstance(note, Scores):
        if number is not None:
            step = ScoreStep("mul", 1 / number if divide else number)
        elif isinstance(b, torch.Tensor) and not (isinstance(notes.find(b), Scores) and b.shape == out.shape):
            step = ScoreStep("mul", operand=1 / b if divide else b)
        else:
            lose(notes, "mul", given.values(), out)
            return
        pass_on(notes, a, out, note, step)
    elif isinstance(note, WeightNote):
        if note.raw and divide and isinstance(b, torch.Tensor):
            note = _normalised(note, a, b)
        elif not divide and a.shape[-1:] == (1,) and isinstance(b, torch.Tensor) and out.shape != a.shape:
            notes.put(out, Products(note, a[..., 0], b.expand(out.shape)))
            return
        elif not divide and isinstance(noise := notes.find(b), DropoutNote):
            note = replace(note, dropout=max(note.dropout, noise.dropout))
        else:
            note = altered(note, "div" if divide else "mul", a, out)
        pass_on(notes, a, out, note)
    else:
        scale_vectors(notes, a, b, number, divide, out)


def _normalised(note: WeightNote, raw: torch.Tensor, sums: torch.Tensor) -> WeightNote:
    """Exponentials are divided by what should be their sum: its logarithm is what softmax would have returned."""
    order = None if note.index is not None else canonical_order(raw, note.geometry)
    if order is None or _size_along(sums, order[-1] - raw.dim()) != 1:
        return replace(note, changed=(*note.changed, "div"))
    note.layer.normalise(sums.expand(*raw.shape).permute(order)[..., :1])
    return replace(note, raw=False)


def divided(notes: Notebook, given: Arguments, out: Any) -> None:
    """Divide scores, weights or vectors."""
    if given.get("rounding_mode") is not None:
        lose(notes, "div", given.values(), out)
    else:
        multiplied(notes, given, out, divide=True)


def added(notes: Notebook, given: Arguments, out: Any, sign: float = 1.0) -> None:
    """Add to scores, or join the halves of a rotation."""
    a, b = given["self"], given["other"]
    number = sign * float(given.get("alpha", 1))
    if summed(notes, a, b, number, out):
        return
    if isinstance(notes.find(b), (Scores, WeightNote)) and not isinstance(notes.find(a), (Scores, WeightNote)):
        if sign < 0 or number != 1:
            lose(notes, "sub", given.values(), out)
            return
        a, b = b, a
    note, other = notes.find(a), notes.find(b)
    lost = isinstance(note, Scores) and note.lost and not note.part_of
    if lost and isinstance(other, Scores) and not other.lost and number == 1:
        a, b, note, other = b, a, other, note
    if isinstance(note, Scores):
        _added_to_scores(notes, a, b, number, note, out)
    elif isinstance(note, WeightNote):
        if not isinstance(other, WeightNote) and number_of(b) is None:
            note = replace(note, mixed=True)
        pass_on(notes, a, out, altered(note, "add" if sign > 0 else "sub", a, out))
    elif isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        factor = factor_of_sum(notes.vectors(a), notes.vectors(b))
        describe(notes, out, VectorNote(factor, width=notes.vectors(a).width))
    elif isinstance(a, torch.Tensor):
        describe(notes, out, VectorNote(1.0 if notes.factor(a) == 1 else None))


def products_added(notes: Notebook, given: Arguments, out: Any) -> None:
    """Join the halves of a rotation, of which one is a product yet to be taken."""
    a, b, c = given["self"], given["tensor1"], given["tensor2"]
    if isinstance(notes.find(a), (Scores, WeightNote)):
        lose(notes, "addcmul", (a,), out)
        return
    b, c = (b, c) if b.numel() >= c.numel() else (c, b)
    product = VectorNote(notes.factor(b), times=c, amplitude=notes.factor(c))
    known = abs(float(given.get("value", 1))) == 1
    describe(notes, out, VectorNote(factor_of_sum(notes.vectors(a), product) if known else None))


def _sum_of_scores(
    notes: Notebook, a: torch.Tensor, out: torch.Tensor, number: float, note: Scores, other: Scores
) -> None:
    """Add scores and a function of the same scores: multiples of a product add up."""
    left, right = note.multiple, other.multiple
    if left and right is not None and left + number * right and note.geometry == other.geometry:
        pass_on(notes, a, out, note, ScoreStep("mul", 1 + number * right / left))
    else:
        notes.put(out, replace(note, lost=note.lost or other.lost or "a sum of scores and a function of them"))


def _added_to_scores(
    notes: Notebook, a: torch.Tensor, b: Any, number: float, note: Scores, out: torch.Tensor
) -> None:
    value = number_of(b)
    operand = b if value is None else torch.full((1,) * a.dim(), float(value), device=a.device)
    found = split_order(a, note.geometry)
    keys = () if found is None else found[0][-found[1] :]
    constant = note.geometry.keys > 1 and all(_size_along(operand, axis - a.dim()) == 1 for axis in keys)
    shift, other = bool(constant and keys), notes.find(b)
    if not shift and isinstance(other, Scores) and other.product is note.product:
        _sum_of_scores(notes, a, out, number, note, other)
    else:
        pass_on(notes, a, out, note, ScoreStep("shift" if shift else "add", number, operand))


def subtracted(notes: Notebook, given: Arguments, out: Any) -> None:
    """Subtract from scores."""
    added(notes, given, out, -1.0)


def filled(notes: Notebook, given: Arguments, out: Any) -> None:
    """Replace values where a mask is True."""
    source = given["self"]
    note, number = notes.find(source), number_of(given["value"])
    if isinstance(note, Scores) and number is not None:
        pass_on(notes, source, out, note, ScoreStep("fill", number, given["mask"]))
    elif isinstance(note, WeightNote):
        pass_on(notes, source, out, altered(note, "masked_fill", source, out))
    elif out is not source:
        _set_factor(notes, out, notes.factor(source))


def chosen(notes: Notebook, given: Arguments, out: Any) -> None:
    """Take values where a condition is True, others where it is False."""
    condition, a, b = given["condition"], given["self"], given["other"]
    mask = condition == 0
    if isinstance(notes.find(b), (Scores, WeightNote)):
        a, b, mask = b, a, condition
    note, number = notes.find(a), number_of(b)
    if isinstance(note, Scores):
        if number is None and isinstance(b, torch.Tensor) and b.numel() and bool((b == b.reshape(-1)[0]).all()):
            number = float(b.reshape(-1)[0])
        if number is None:
            lose(notes, "where", given.values(), out)
        else:
            pass_on(notes, a, out, note, ScoreStep("fill", number, mask))
    elif isinstance(note, WeightNote):
        pass_on(notes, a, out, altered(note, "where", a, out))


def softcap(notes: Notebook, given: Arguments, out: Any) -> None:
    """Bend scores by tanh, as a soft-cap does."""
    note = notes.find(given["self"])
    if isinstance(note, Scores):
        pass_on(notes, given["self"], out, note, ScoreStep("tanh"))


def clamped(notes: Notebook, given: Arguments, out: Any) -> None:
    """Limit scores."""
    note = notes.find(given["self"])
    low, high = given.get("min", given.get("other")), given.get("max")
    low, high = number_of(-math.inf if low is None else low), number_of(math.inf if high is None else high)
    if isinstance(note, Scores) and low is not None and high is not None:
        pass_on(notes, given["self"], out, note, ScoreStep("clamp", low, upper=high))
    else:
        lose(notes, "limits that differ", given.values(), out)


def drawn(notes: Notebook, given: Arguments, out: Any) -> None:
    """Note random zeros and ones, as dropout draws where it is not one operation."""
    kept = number_of(given.get("p", 0.5))
    if kept is not None:
        notes.put(out, DropoutNote(round(1 - kept, 6)))


def dropped(notes: Notebook, given: Arguments, out: Any) -> None:
    """Pass weights on through dropout."""
    source = next(iter(given.values()))
    note = notes.find(source)
    result = cast(Any, out[0] if isinstance(out, tuple) else out)
    if isinstance(note, WeightNote):
        probability = given.get("p", 0.0)
        pass_on(notes, source, result, replace(note, dropout=max(note.dropout, float(probability or 0.0))))
    else:
        lose(notes, "dropout", given.values(), result)


def lose(notes: Notebook, name: str, values: Iterable[Any], out: Any) -> None:
    """An operation without a rule: its result is not understood."""
    if not isinstance(out, torch.Tensor) or not out.is_floating_point() or is_new(name):
        return
    for value in values:
        note = notes.find(value)
        if isinstance(note, Scores) and not _same_storage(value, out):
            notes.put(out, replace(note, lost=name))
            return
        if isinstance(note, WeightNote):
            reached(note, name)


def number_of(value: Any) -> float | None:
    """Return a number, or the value of a tensor with one element; None for anything else."""
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and not value.is_complex() else None
    return float(value) if isinstance(value, (int, float)) else None


def _narrower(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """Return the format with fewer digits."""
    return b if b.is_floating_point and torch.finfo(b).eps > torch.finfo(a).eps else a


def _size_along(tensor: torch.Tensor, axis: int) -> int:
    """Return the size of a dimension counted from the end; 1 if the tensor has fewer."""
    return tensor.shape[axis] if -axis <= tensor.dim() else 1


def _same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


_NAMES: tuple[tuple[Rule, str], ...] = (
    (copied, "_to_copy clone copy contiguous lift_fresh_copy view_copy _reshape_copy"),
    (moved, "index index_select repeat roll flip gather repeat_interleave take_along_dim tile"),
    (negated, "neg neg_"),
    (written, "copy_ index_copy_ index_copy index_put_ index_put slice_scatter select_scatter scatter_"),
    (joined, "cat stack concat"),
    (padded, "constant_pad_nd"),
    (multiplied, "mul mul_"),
    (divided, "div div_"),
    (added, "add add_"),
    (products_added, "addcmul addcmul_"),
    (normed, "native_layer_norm _fused_rms_norm"),
    (subtracted, "sub sub_"),
    (filled, "masked_fill masked_fill_"),
    (filled_whole, "fill_"),
    (chosen, "where"),
    (softcap, "tanh tanh_"),
    (clamped, "clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ maximum"),
    (drawn, "bernoulli_"),
    (dropped, "native_dropout dropout nan_to_num nan_to_num_"),
)
RULES = {f"aten::{name}": rule for rule, names in _NAMES for name in names.split()}
