"""What happened to scores between the product and softmax: multiplier, soft-cap, bias, hidden keys, sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from .scores import ScoreStep

# From a step's operand to the kept [batch or 1, heads or 1, rows, keys].
Pick = Callable[[torch.Tensor], torch.Tensor]

_NEVER = 9_000.0  # an added or filled value below minus this hides keys (BERT adds -10,000) …
_SURELY = 32_000.0  # … if it is the smallest; below minus this in any case (half of float16's -65,504)


@dataclass
class ScoreChain:
    """The steps in the terms of the mathematics: logit = softcap(scale · q·k) + bias, where not hidden."""

    scale: float = 1.0
    head_scales: torch.Tensor | None = None  # [heads], multiplied onto `scale`
    softcap: float | None = None
    bias: torch.Tensor | None = None
    bias_dtype: torch.dtype | None = None  # the operand's, if its values were added as they are
    hidden: torch.Tensor | None = None
    zeroed: torch.Tensor | None = None  # scores multiplied by 0, which something hides
    unknown: bool = False  # whether scores are multiplied by what is not one number
    sinks: torch.Tensor | None = None  # [heads]
    shift: torch.Tensor | None = None  # [batch or 1, heads or 1, rows, 1], added to whole rows: softmax ignores it
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    logits: torch.Tensor | None = None  # [batch, heads, rows, keys + sinks] that entered softmax, if they were seen

    def hide(self, hidden: torch.Tensor) -> None:
        """Hide these keys, too."""
        self.hidden = hidden if self.hidden is None else self.hidden | hidden


def read(steps: Sequence[ScoreStep], pick: Pick, pick_sinks: Pick) -> ScoreChain:
    """Return the reading of these steps. What it cannot express is a problem: the logits' own values must be kept."""
    reading = ScoreChain()
    for step in steps:
        _READERS[step.kind](reading, step, pick_sinks if step.kind == "sink" else pick)
    if reading.zeroed is not None:
        left = reading.zeroed if reading.hidden is None else reading.zeroed & ~reading.hidden
        if bool(left.any()):
            reading.problems.append("scores are multiplied by 0")
    return reading


def _mul(reading: ScoreChain, step: ScoreStep, pick: Pick) -> None:
    if step.operand is not None:
        _mul_tensor(reading, pick(step.operand).double())
        return
    reading.scale *= step.number
    if reading.softcap is not None:
        reading.softcap *= step.number
    if reading.bias is not None and step.number != 1:
        reading.bias = reading.bias * step.number
        reading.bias_dtype = None
    if reading.shift is not None:
        reading.shift = reading.shift * step.number


def _mul_tensor(reading: ScoreChain, factors: torch.Tensor) -> None:
    """Multiply each head by its own factor, or some pairs by 0."""
    by_head = factors[:1, :, :1, :1]
    if bool(((factors == 0) | (factors == 1)).all()):
        zeroed = factors == 0
        reading.zeroed = zeroed if reading.zeroed is None else reading.zeroed | zeroed
        reading.bias = None if reading.bias is None else reading.bias.masked_fill(zeroed, 0.0)
    elif reading.bias is not None or reading.softcap is not None or not bool((factors == by_head).all()):
        reading.unknown = True
        reading.problems.append("scores are multiplied by a tensor that does not depend on the head alone")
    elif by_head.numel() == 1:
        reading.scale *= float(by_head)
    else:
        own = by_head.reshape(-1)
        reading.head_scales = own if reading.head_scales is None else reading.head_scales * own


def _tanh(reading: ScoreChain, _: ScoreStep, __: Pick) -> None:
    if reading.bias is not None or reading.softcap is not None:
        reading.problems.append("tanh after a bias")
        return
    reading.softcap = 1.0


def _add(reading: ScoreChain, step: ScoreStep, pick: Pick) -> None:
    assert step.operand is not None
    raw = pick(step.operand)
    values = raw.double() * step.number
    hidden = (values <= -_SURELY) | ((values <= -_NEVER) & (values == values.min()))
    if bool(hidden.any()):
        reading.hide(hidden)
        values = values.masked_fill(hidden, 0.0)
    if not bool(values.any()):
        return
    alone = reading.bias is None and step.number == 1
    reading.bias = values if reading.bias is None else reading.bias + values
    reading.bias_dtype = raw.dtype if alone else None


def _shift(reading: ScoreChain, step: ScoreStep, pick: Pick) -> None:
    assert step.operand is not None
    values = pick(step.operand)[..., :1].double() * step.number
    reading.shift = values if reading.shift is None else reading.shift + values


def _fill(reading: ScoreChain, step: ScoreStep, pick: Pick) -> None:
    assert step.operand is not None
    filled = pick(step.operand) != 0
    if step.number <= -_NEVER:
        reading.hide(filled)
    elif bool(filled.any()):
        reading.problems.append(f"scores are replaced by {step.number:g}")


def _clamp(reading: ScoreChain, step: ScoreStep, _: Pick) -> None:
    reading.notes.append(f"scores are clamped to [{step.number:g}, {step.upper:g}]")


def _sink(reading: ScoreChain, step: ScoreStep, pick_sinks: Pick) -> None:
    assert step.operand is not None
    values = pick_sinks(step.operand).double()  # [batch or 1, heads or 1, rows, sinks]
    sinks = values[:1, :, :1, :]
    if values.shape[-1] != 1 or not bool((values == sinks).all()):
        reading.problems.append("columns of no key that differ from row to row")
        return
    reading.sinks = sinks.reshape(-1)


_READERS: dict[str, Callable[[ScoreChain, ScoreStep, Pick], None]] = {
    "mul": _mul,
    "tanh": _tanh,
    "add": _add,
    "shift": _shift,
    "fill": _fill,
    "clamp": _clamp,
    "sink": _sink,
}
