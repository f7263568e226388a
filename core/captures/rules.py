"""How attention of a captured head is computed under a scale rule.

q and k as stored may contain factors already (`prescaled`). A rule is a multiplier of q·k without them, so scores as
stored are multiplied by the rule's multiplier over these factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..attention.computation import Computation, OfRows
from ..attention.visibility import Rows
from ..errors import InputError
from ..parameters import ROUNDED
from ..scales import Normalise, RuleSetting, multiplier, row_multiplier, scale_rule
from .capture import NOTHING, HeadContext, Layer
from .settings import AS_STORED, FILE, HeadSetting, ScoreProcessing

if TYPE_CHECKING:
    from .head import HeadData


@dataclass(frozen=True)
class Rule:
    """A scale rule for the heads of a layer, and how their logits are computed."""

    name: str  # of SCALE_RULES, or "file"
    multiplier: float  # of q·k without factors that are stored in q and k; for the last query, if rows differ
    setting: RuleSetting | None = None  # what the multipliers of rows are computed from; None if they do not differ
    position: int | None = None  # of the last query; None: as the file says
    computed: ScoreProcessing = AS_STORED

    @property
    def normalise(self) -> Normalise:
        """How q and k are normalised; those in a file have already had the model's own norm."""
        return "none" if self.name == FILE else scale_rule(self.name).normalise

    @property
    def on_vectors(self) -> bool:
        """Whether it multiplies q and k instead of their score, which differs in formats of 16 and 8 bits."""
        return self.name != FILE and scale_rule(self.name).on_vectors and self.computed.precision in ROUNDED


def file_rule(layer: Layer) -> Rule:
    """Return the scale in the file; 1/√d_k if it has none. Where heads or rows differ, `computation` has theirs."""
    if layer.scale is not None:
        return Rule("file", layer.scale * layer.own_factor)
    if layer.head_scales is not None or layer.scales is not None:
        return Rule("file", 1.0)
    return named_rule("sqrt_d_k", layer)


def named_rule(name: str, layer: Layer, custom: float = 1.0, context: HeadContext = NOTHING) -> Rule:
    """Return a rule of SCALE_RULES for this layer, or the file's own if `name` is "file".

    Raise InputError if the rule needs what neither the file nor `context` says, and ParameterError if it has no
    multiplier.
    """
    if name == "file":
        return file_rule(layer)
    rule = scale_rule(name)
    needs = rule.needs
    factor = context.context_factor or layer.context_factor
    if "context_factor" in needs and factor is None:
        raise InputError(
            "scale {name}: the file does not say how far its context was extended; give --context-factor", name=name
        )
    if "layer" in needs and not layer.numbered and context.layer is None:
        raise InputError("scale {name}: the file does not say the number of the layer; give --layer-index", name=name)
    if "temperature" in needs and context.temperature is None:
        raise InputError(
            "scale {name}: the file does not say the temperature that the head learned; give --temperature", name=name
        )
    square = layer.queries == layer.keys
    if "position" in needs and context.position is None and not (square or layer.causal or layer.rows):
        raise InputError("scale {name}: the file does not say where queries stand; give --position", name=name)
    from_start = layer.alignment == "top_left" and layer.rows is None
    last = (layer.queries if from_start else layer.keys) - 1 if context.position is None else context.position
    number = layer.index if layer.numbered or context.layer is None else context.layer
    temperature = context.temperature or RuleSetting().temperature
    setting = RuleSetting(layer.d_k, layer.keys, custom, number, last, factor or 1.0, temperature)
    return Rule(name, multiplier(name, setting), setting if rule.by_row else None, context.position)


def rule_of(setting: HeadSetting, layer: Layer, context: HeadContext = NOTHING) -> Rule:
    """Return the rule of a setting for this layer; raise what `named_rule` raises."""
    return replace(named_rule(setting.scale, layer, setting.multiplier, context), computed=setting.computed)


def computation(rule: Rule, layer: Layer, data: HeadData) -> Computation:
    """Return how attention of a head is computed under a rule, from q and k as stored."""
    factor = layer.own_factor if rule.normalise == "none" else 1.0  # normalised q and k contain no factors
    by: float | FloatArray | OfRows = rule.multiplier / factor
    setting = rule.setting
    if rule.name == FILE and data.scale is not None:
        by = data.scale
    elif setting is not None:
        first = first_position(rule, data)

        def of_rows(seen: npt.NDArray[np.intp], _: slice, rows: Rows) -> FloatArray:
            both = np.stack(np.broadcast_arrays(seen, first + data.positions[rows])).astype(np.int64)
            return _of_rows(rule.name, setting, both.tobytes(), both.shape) / factor

        by = of_rows
    return Computation(
        norms=(rule.normalise, rule.normalise),
        factor=math.sqrt(rule.multiplier / factor) if rule.on_vectors else 1.0,
        multiplier=1.0 if rule.on_vectors else by,
        softcap=rule.computed.cap(layer.softcap),
        biases=data.biases,
        visibility=data.visibility,
        sink=data.sink,
        precision=rule.computed.precision,
        arithmetic=rule.computed.arithmetic,
    )


def first_position(rule: Rule, data: HeadData) -> int:
    """Return the position of the first key in its text."""
    return 0 if rule.position is None else rule.position - int(data.positions[-1])


@lru_cache(256)  # heads of a layer have the same rows
def _of_rows(name: str, setting: RuleSetting, both: bytes, shape: tuple[int, ...]) -> FloatArray:
    """Return the multipliers of rows from the bytes of the numbers of keys that they see, and of their positions."""
    kinds, place = np.unique(np.frombuffer(both, np.int64).reshape(2, -1), axis=1, return_inverse=True)
    multipliers = [row_multiplier(name, setting._replace(n_keys=n, position=at)) for n, at in kinds.T.tolist()]
    return np.array(multipliers)[place.reshape(-1)].reshape(shape[1:])


def shown_multiplier(rule: Rule, layer: Layer, data: HeadData) -> float:
    """Return the multiplier that a column states, of q·k without stored factors.

    If the file's own differ between rows, it is their mean; of a rule, it is that of the last query, if this sees two
    keys.
    """
    if rule.name == "file" and data.scale is not None:
        return float(np.mean(data.scale)) * layer.own_factor
    c = computation(rule, layer, data)
    if not callable(c.multiplier):
        return rule.multiplier
    text, last = slice(0, 1), slice(data.q.shape[1] - 1, None)
    keys = data.k.shape[1]
    terms = c.terms((1, 1, keys), text, last)
    seen = keys if terms.hidden is None else keys - int(np.count_nonzero(terms.hidden))
    factor = layer.own_factor if rule.normalise == "none" else 1.0
    return np.asarray(terms.multiplier).item() * factor if seen > 1 else rule.multiplier
