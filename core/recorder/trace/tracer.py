"""The rules: what each ATen operation does to scores, weights, and tensors that may become queries or keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch

from ..layers.eager import Pending, RecordingLimits, add_values, capture
from ..layers.geometry import canonical_order, geometry_of
from ..layers.layer import RecordedLayer, Site, turned
from ..layers.outputs import Outputs
from ..layers.placement import placement
from ..layers.scores import EIGHT_BITS, Product, ScoreFactors, Scores, ScoreStep
from .elementwise import OTHER_WEIGHTS, RULES, Arguments, lose, pass_on
from .flex import is_flex, record_flex
from .fused import UNKNOWN, calls_of, is_fused, is_known, record_call, with_lse
from .notes import Notebook, Products, Summand, VectorNote, WeightNote, factors_of
from .vllm import OPERATORS, Texts
from .weights import other, reached


@dataclass(frozen=True)
class Listener:
    """Who is told what was seen."""

    modules: Callable[[], tuple[torch.nn.Module, ...]]  # that are running
    site: Callable[..., Site | None]  # where the program is, of a product made in these modules; None: not recorded
    wanted: Callable[[Site], bool]  # whether a call there is recorded
    take: Callable[[RecordedLayer], None]
    miss: Callable[..., None]  # attention was seen at a site that could not be recorded, and why; how many calls


class Tracer:
    """Follows one forward pass, operation by operation."""

    def __init__(self, recipe: RecordingLimits, listener: Listener) -> None:
        self.recipe = recipe
        self.listener = listener
        self.notes = Notebook()
        self._pending: list[Pending] = []
        self._texts = Texts()

    def know(self, parameters: Iterable[torch.Tensor]) -> None:
        """Begin a pass. Products with these parameters are not attention."""
        parameter = VectorNote(parameter=True)
        for tensor in parameters:
            self.notes.put(tensor, parameter)

    def stop(self) -> None:
        """End recording: take the layers whose weights were not seen to meet the values, and forget everything."""
        for pending in self._pending:
            self._complete(pending)
            if not pending.done and (pending.alone or pending.met) and (layer := pending.layer) is not None:
                changed = () if pending.weights is None else pending.weights.changed
                layer.followed, layer.changed = False, tuple(dict.fromkeys((*changed, *pending.reached)))
                self.listener.take(layer)
        self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self._pending.clear()
        self.notes.clear()

    def saw(self, func: Any, args: Sequence[Any], kwargs: Arguments, out: Any) -> None:
        """Learn from an operation that has just run."""
        if not isinstance(func, torch._ops.OpOverload):
            if is_flex(func):
                self._flex(args, out)
            return
        name = func._schema.name
        if name not in _OF_WEIGHTS and other(self.notes, func, args, kwargs, out):
            return
        if (product := _PRODUCTS.get(name)) is not None:
            product(self, bound(func, args, kwargs), out)
        elif (rule := RULES.get(name)) is not None:
            rule(self.notes, bound(func, args, kwargs), out)
        elif name in OPERATORS:
            self._engine_call(name, bound(func, args, kwargs))
        elif _fused(func):
            self._fused_call(func, bound(func, args, kwargs), out)
        elif func._schema.is_mutable:
            for name, value in bound(func, args, kwargs).items():
                if _is_written(func, name):
                    self.notes.drop(value)
        else:
            lose(self.notes, name, args, out)

    def product(self, given: Arguments, out: Any) -> None:
        """A product of matrices: maybe of queries and keys, maybe of weights and values."""
        self._multiply(given["self"], given["mat2"], out)

    def product_added(self, given: Arguments, out: Any) -> None:
        """baddbmm and addmm: beta · self + alpha · batch1 @ batch2."""
        a, b = (given["batch1"], given["batch2"]) if "batch1" in given else (given["mat1"], given["mat2"])
        steps: list[ScoreStep] = []
        alpha, beta = float(given.get("alpha", 1)), float(given.get("beta", 1))
        if alpha != 1:
            steps.append(ScoreStep("mul", alpha))
        if beta != 0:
            steps.append(ScoreStep("add", beta, given["self"].expand(out.shape)))
        self._multiply(a, b, out, tuple(steps))

    def product_of_8_bits(self, given: Arguments, out: Any) -> None:
        """A product of matrices with scales of their own: if it is one of queries and keys, it is missed by name."""
        a, b = given["self"], given["mat2"]
        product = Product(a[None], b.t()[None], ScoreFactors(None, None), None, a.shape[-1], self.listener.modules())
        self.notes.put(out, Scores(product, geometry_of(out), out.dtype, lost=EIGHT_BITS))

    def _multiply(
        self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, steps: tuple[ScoreStep, ...] = ()
    ) -> None:
        for weights, values, exchanged in ((a, b, False), (b.transpose(-1, -2), a.transpose(-1, -2), True)):
            note = self.notes.find(weights)
            if isinstance(note, WeightNote):
                self._weigh(note, weights, values, out.transpose(-1, -2) if exchanged else out)
                return
        notes = self.notes.vectors(a), self.notes.vectors(b)
        single = a.dim() == 2 or a.shape[0] == 1
        linear = any(note.parameter for note in notes) and (single or (notes[1].parameter and b.stride(0) == 0))
        outer = a.shape[-1] == 1  # frequencies times positions of a rotary embedding
        for operand in (a, b.transpose(-1, -2)):  # as talking heads mix scores
            note = self.notes.find(operand)
            if isinstance(note, Scores) and not note.lost and (linear or note.geometry.is_across(operand)):
                self.notes.put(out, replace(note, lost="a product with a matrix"))
                return
        if linear or outer or not a.is_floating_point() or 0 in (*a.shape, *out.shape):
            return
        q, k = (a, b.transpose(-1, -2)) if a.dim() == 3 else (a[None], b.t()[None])
        width = notes[0].width if notes[0].width == notes[1].width else None
        factors = factors_of(self.notes, a, b)
        if factors.rows is not None and a.dim() == 2:
            factors = replace(factors, rows=factors.rows[None])
        product = Product(q, k, factors, width, q.shape[-1], self.listener.modules())
        batched = out if out.dim() == 3 else out[None]
        self.notes.put(out, Scores(product, geometry_of(batched), out.dtype, steps))

    def product_by_element(self, given: Arguments, out: Any) -> None:
        """A product element by element; of the weights of a single key, einsum needs no sum: [..., d_v, 1]."""
        RULES["aten::mul"](self.notes, given, out)
        note = self.notes.find(out)
        if isinstance(note, Products) and note.note.geometry.keys - note.note.sinks == out.shape[-1] == 1:
            self._weigh(note.note, note.weights[..., None], note.values.mT, out.mT)

    def sum(self, given: Arguments, out: Any) -> None:
        """A sum over the keys of weights times values, element by element, is their product."""
        source, dims = given["self"], given.get("dim")
        note = self.notes.find(source)
        if not isinstance(note, Products):
            lose(self.notes, "aten::sum", (source,), out)
            return
        values = note.values
        axes = [axis % source.dim() for axis in dims or ()]
        if source.shape == values.shape and axes == [source.dim() - 2] and values.stride(-3) == 0:
            result = out.squeeze(-2) if given.get("keepdim") else out
            self._weigh(note.note, note.weights, values.select(-3, 0), result)
        else:
            reached(note.note, "mul")

    def _weigh(self, note: WeightNote, weights: torch.Tensor, values: torch.Tensor, out: torch.Tensor) -> None:
        """Attention weights are multiplied by a matrix, which may hold the values of all keys or of some."""
        pending: Pending = note.layer
        if pending.done:
            return
        pending.met = True
        order = None if note.index is not None else canonical_order(weights, note.geometry, note.sinks)
        last = None if order is None else order[-1] == weights.dim() - 1
        if last is False:
            self._weigh_turned(pending, note, weights, values, out, order)
        elif order == (*range(weights.dim()),):
            layer = pending.layer
            if layer is not None and self.recipe.values and self._is_whole(note):
                pending.add_values(values, out)
            self._met(pending, note)
        elif (outputs := pending.gathered(self.recipe.values and self._is_whole(note))) is not None:
            self._gather(pending, outputs, note, weights, values, out)
        else:
            pending.done = True

    def _gather(
        self,
        pending: Pending,
        outputs: Outputs,
        note: WeightNote,
        weights: torch.Tensor,
        values: torch.Tensor,
        out: torch.Tensor,
    ) -> None:
        """Take a product of some of the weights, or of weights in another order than the scores'."""
        place = placement(weights, note.geometry, note.index)
        if place is None:
            turned = pending.over_queries is not None and placement(weights.mT, note.geometry, note.index) is not None
            if turned:
                self._weigh_turned(pending, note, weights, values, out, None)
            elif note.index is None and note.geometry.is_across(weights):
                reached(note, "a product with a matrix")
            return
        real = outputs.real(place)
        met = torch.stack(
            [torch.bincount(keys[own], minlength=pending.keys) for keys, own in zip(place.keys, real, strict=True)]
        )
        if bool((met > 1).any()) or (len(met) > 1 and not bool(met.all())):
            reached(note, "a product with some keys")
            return
        count, width = len(place.rows), values.shape[-1]
        values, out = values.reshape(count, -1, width), out.reshape(count, -1, width)
        if not outputs.add_values(place, values) and outputs.keep and pending.layer is not None:
            pending.layer.notes.append("values are not kept: the same weights meet several")
            outputs.keep = False
        pending.weights = note if pending.weights is None else pending.weights.with_all_of(note)
        if bool(met.all()):
            outputs.add_outputs(place, out)
        else:
            self.notes.put(out, Summand(pending, place, met[0] > 0, width))
        self._complete(pending)

    def _complete(self, pending: Pending) -> None:
        """Take a layer all of whose weights have met the values."""
        outputs, note = pending.outputs, pending.weights
        if pending.done or outputs is None or note is None or not outputs.complete:
            return
        whole = outputs.keep and self._is_whole(note) and pending.layer is not None
        if whole and pending.layer is not None and outputs.v is not None and outputs.o is not None:
            add_values(pending.layer, outputs.v, outputs.o)
        self._met(pending, note)

    def _is_whole(self, note: WeightNote) -> bool:
        """Return whether nothing was done to weights, so that outputs tell of the scores."""
        return not (note.changed or note.dropout or note.raw or note.logarithm)

    def _weigh_turned(
        self,
        pending: Pending,
        note: WeightNote,
        weights: torch.Tensor,
        values: torch.Tensor,
        out: torch.Tensor,
        order: tuple[int, ...] | None,
    ) -> None:
        """Weights met the values along the other axis than that of softmax, which ran over the queries."""
        if pending.over_queries is not None:
            pending.layer = pending.over_queries()
            straight = order == (*range(weights.dim() - 2), weights.dim() - 1, weights.dim() - 2)
            if straight and self.recipe.values and self._is_whole(note):
                pending.add_values(values, out)
        elif pending.layer is not None:
            pending.layer = turned(pending.layer, self.recipe.rows)
        self._met(pending, note)

    def _met(self, pending: Pending, note: WeightNote) -> None:
        """Take a layer whose weights have met the values."""
        pending.done, pending.outputs, pending.over_queries, layer = True, None, None, pending.layer
        if layer is None:
            return
        if note.raw and "div" in note.changed:
            self.listener.miss(layer.site, "exponentials are divided by something else than their sum over the keys")
            return
        if note.mixed:
            self.listener.miss(layer.site, OTHER_WEIGHTS, 0)
        if note.raw:
            layer.notes.append("the weights are not divided by their sum before they meet the values")
            layer.followed = False
        changed = (*note.changed, "log") if note.logarithm else note.changed
        layer.dropout, layer.changed = note.dropout, tuple(dict.fromkeys(changed))
        self.listener.take(layer)

    def exponential(self, given: Arguments, out: Any) -> None:
        """Scores become weights that are still to be divided by their sum."""
        note = self.notes.find(given["self"])
        if isinstance(note, WeightNote) and note.logarithm:
            pass_on(self.notes, given["self"], out, replace(note, logarithm=False))
        else:
            self.softmax(given, out, raw=True)

    def softmax(self, given: Arguments, out: Any, raw: bool = False, logarithm: bool = False) -> None:
        """Scores become weights, `raw` ones before they are divided by their sum, or the logarithm of weights."""
        x = given["self"]
        note = self.notes.find(x)
        if not isinstance(note, Scores):
            return
        site, order = self.listener.site(note.product.modules), canonical_order(x, note.geometry)
        if site is None or (note.lost and raw):  # such as the decay of a recurrence whose gates are products
            return
        if note.lost or order is None:
            self.listener.miss(site, f"scores went through {note.lost or 'a view'} that is not understood")
            return
        over_queries: Callable[[Pending, Site], RecordedLayer | None] | None = None
        dim = order[-1] if raw else given["dim"] % x.dim()
        if dim != order[-1]:
            if dim != order[-2] or x.shape[dim] != note.product.q.shape[1]:
                self.listener.miss(site, "softmax runs over neither keys nor queries")
                return
            over_queries = partial(self._over_queries, note, x.permute(order))
            order, note = (*order[:-2], order[-1], dim), note.turned()
        pending = Pending()
        self._pending.append(pending)
        whole = raw and bool(((out.sum(dim) - 1).abs() < _WHOLE).all())  # such as exp(scores − log-sum-exp)
        self.notes.put(out, WeightNote(pending, geometry_of(out, order), note.sinks, raw and not whole, logarithm))
        if self.listener.wanted(site):
            pending.layer = capture(pending, note, x.permute(order), site, self.recipe, raw)
            if over_queries is not None and pending.layer is not None:
                pending.layer.notes.append("softmax runs over the rows of the product: they are taken for the keys")
                pending.over_queries = partial(over_queries, pending, site)

    def _over_queries(self, note: Scores, x: torch.Tensor, pending: Pending, site: Site) -> RecordedLayer | None:
        """Return the layer whose softmax ran over its queries: the values are multiplied along the other axis."""
        if (layer := capture(pending, note, x, site, self.recipe, False)) is None:
            return None
        layer.over_queries = True
        layer.parts[0] = replace(layer.parts[0], lse=None)
        return layer

    def _fused_call(self, func: Any, given: Arguments, out: Any) -> None:
        if (site := self.listener.site()) is None:
            return
        calls = calls_of(func, given, with_lse(func, given, out))

        def layers() -> Iterator[RecordedLayer]:
            for call in () if isinstance(calls, str) else calls:
                factors = factors_of(self.notes, call.q, call.k)
                yield record_call(replace(call, factors=factors), site, self.recipe)

        found = calls if isinstance(calls, str) else None
        if found is None and not is_known(func):
            found = next((layer for layer in layers() if layer.checked and layer.exact), UNKNOWN)
        if isinstance(found, str):
            self.listener.miss(site, f"{func._schema.name}: {found}")
        elif self.listener.wanted(site):
            self.listener.take(found or next(layers()))

    def _engine_call(self, operator: str, given: Arguments) -> None:
        site, found = self.listener.site(), self._texts.call_of(operator, given, self.recipe.batch)
        self.notes.drop(given["output"])
        if found is None or site is None:
            return
        name, call = found
        site = replace(site, name=name or site.name)
        if isinstance(call, str):
            self.listener.miss(site, f"{operator}: {call}")
        elif self.listener.wanted(site):
            factors = factors_of(self.notes, given["query"], given["key"])
            known = factors if factors.rows is None else replace(factors, q=None, rows=None)  # tokens are moved
            self.listener.take(record_call(replace(call, factors=known), site, self.recipe))

    def _flex(self, args: Sequence[Any], out: Any) -> None:
        site = self.listener.site()
        if site is not None and self.listener.wanted(site):
            factors = factors_of(self.notes, args[0], args[1])
            self.listener.take(record_flex(args, out, factors, site, self.recipe))


def bound(func: Any, args: Sequence[Any], kwargs: Arguments) -> Arguments:
    """Return the arguments of an operation by name; those left at their default are missing."""
    return {**dict(zip(_names(func), args, strict=False)), **kwargs}


@cache
def _names(func: Any) -> tuple[str, ...]:
    return tuple(argument.name for argument in func._schema.arguments)


@cache
def _fused(func: Any) -> bool:
    """Return whether an operation is a fused attention kernel."""
    return is_fused(func._schema.name, [argument.name for argument in func._schema.arguments])


def _is_written(func: Any, name: str) -> bool:
    infos = {argument.name: argument.alias_info for argument in func._schema.arguments}
    info = infos.get(name)
    return info is not None and info.is_write


_WHOLE = 1e-3  # how far from 1 the sum of weights is that float16 rounds
_RULED = (  # operations with rules for weights; `other` follows the rest
    "_to_copy clone copy contiguous lift_fresh_copy view_copy _reshape_copy copy_ index_copy_ index_copy index_put_ "
    "index_put slice_scatter select_scatter scatter_ mul mul_ div div_ add add_ sub sub_ masked_fill masked_fill_ "
    "fill_ where native_dropout dropout nan_to_num nan_to_num_ exp exp_ bmm mm baddbmm addmm"
)
_OF_WEIGHTS = frozenset(f"aten::{name}" for name in _RULED.split())
_PRODUCTS: dict[str, Callable[[Tracer, Arguments, Any], None]] = {
    "aten::bmm": Tracer.product,
    "aten::mm": Tracer.product,
    "aten::baddbmm": Tracer.product_added,
    "aten::addmm": Tracer.product_added,
    "aten::mul": Tracer.product_by_element,
    "aten::_scaled_mm": Tracer.product_of_8_bits,
    "aten::_scaled_mm_v2": Tracer.product_of_8_bits,
    "aten::_softmax": Tracer.softmax,
    "aten::_safe_softmax": Tracer.softmax,
    "aten::_log_softmax": partial(Tracer.softmax, logarithm=True),
    "aten::sum": Tracer.sum,
    "aten::exp": Tracer.exponential,
    "aten::exp_": Tracer.exponential,
}
