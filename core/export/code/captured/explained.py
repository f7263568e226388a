"""How the best explanation of a head says that its logits were made, as lines of a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....arrays import BoolArray
from ....captures.capture import HeadSubject
from ....captures.head import CaptureFile
from ....diagnosis.causes.hypothesis import Hypothesis, as_stored
from ....diagnosis.fitting.model import Model
from ....diagnosis.subject import Subject, places, spread_rows
from ....diagnosis.trial import Found
from ....parameters import Parameters
from ....scales import Normalise
from ..parts.attention import TORCH_NORMS, logit_lines
from ..program import Dialect, NoCodeError, number
from .head import side_of
from .loading import Loaded, loaded
from .tensors import Reader

_CAP = 9876.5  # stands for a soft-cap that is a variable
_KEPT = ("softmax-axis", "dropout-on", "scale-base2")  # causes whose scores are those that the file says
_NUMPY_NORMS: dict[Normalise, str] = {
    "rms": "x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)",
    "layer_norm": "(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)",
}


@dataclass(frozen=True)
class _Made:
    """How the best explanation says that the logits of a head were made, where that is not as in its file."""

    key_head: int
    value_head: int
    swapped: bool = False  # whether queries and keys changed places
    norm: Normalise = "none"
    rows: bool = True  # whether the file's multipliers of rows were applied
    mask: bool = True  # whether the file's mask was applied
    ahead: int | None = None  # instead of it, a row sees keys up to this many after its own


@dataclass(frozen=True)
class Explained:
    """The lines that read a head and make its logits z, with a multiplier `scale` and, if they are free, `cap`."""

    loaded: Loaded
    lines: Sequence[str]
    body: Sequence[str]
    parameters: Parameters  # what stands for the head: its softcap, sink and mask
    altered: bool  # whether the mask is not the file's
    value_head: int

    @property
    def masked(self) -> bool:
        """Whether keys are hidden."""
        return self.parameters.mask != "none"


def explained(
    about: HeadSubject, subject: Subject, model: Model, hypothesis: Hypothesis | None, dialect: Dialect
) -> Explained:
    """Return how a model of a head is computed; raise NoCodeError if that takes more than a short program."""
    made = _made(subject, about, model, hypothesis)
    if not made.mask:
        about = replace(about, layer=replace(about.layer, causal=None))
    found = loaded(about, dialect, by_position=made.ahead is not None, key_head=made.key_head)
    masked = found.hides.hides or made.ahead is not None
    p = replace(
        side_of(about, "none", masked),
        softcap=_CAP if model.free_softcap else model.softcap or 0.0,
        sink="none" if model.sink is None and not model.free_sink else "logit",
    )
    lines = [*found.lines]
    if about.understood.scales is not None and made.rows and subject.row_scales is not None:
        path, tensor, shape = about.understood.scales
        own = found.reader.numbers(f"{found.reader.tensor(path, tensor)}.reshape{shape}")
        at = about.head if shape[1] > 1 else 0
        lines.append(f"q = q * ({own}[:, {at}, :, None] / {number(subject.facts.scale or 1.0)})  # of each query")
    if made.ahead is not None:
        library = "np" if dialect == "python" else "torch"
        ahead = f" + {made.ahead}".replace("+ -", "- ") if made.ahead else ""
        lines.append(f"hidden = {library}.arange(n) > at[:, None]{ahead}")
    if made.swapped:
        lines.append("q, k = k, q")
    if made.norm != "none":
        norm = TORCH_NORMS if dialect == "torch" else _NUMPY_NORMS
        lines += [f"{name} = {norm[made.norm].replace('x', name)}" for name in ("q", "k")]
    body = logit_lines([p], dialect, "q", bias="bias" * (found.hides.biased and model.bias is not None))
    if model.free_softcap:
        body = [line.replace(f"{_CAP:g}", "cap") for line in body]
    return Explained(found, lines, body, p, not made.mask, made.value_head)


def _made(subject: Subject, about: HeadSubject, model: Model, hypothesis: Hypothesis | None) -> _Made:
    """Return how logits were made; raise NoCodeError if that is not in this short program's means."""
    layer, head = about.layer, about.head
    group = layer.heads // layer.kv_heads
    made = _Made(head // group, head // group)
    cause, said = (None, "") if hypothesis is None else (hypothesis.cause, hypothesis.words)
    bent = bool(model.outer) or (model.free_softcap and model.free_sink)
    bent |= (model.free_softcap or model.free_sink) and model.axis == -2
    completed = subject.facts.window is not None and (layer.window is None or layer.window[0] is None)
    known = cause is None or cause in _KEPT or cause.endswith("-missing") or model.free_softcap or model.free_sink
    match cause:
        case "gqa-tiled":
            other = head % layer.kv_heads
            made = replace(made, key_head=other, value_head=made.value_head if model.v is None else other)
            known = True
        case "qk-swapped":
            made, known = replace(made, swapped=True), True
        case "scale-by-position":
            made, known = replace(made, rows=False), len(model.inner) == 1 and subject.row_scales is not None
        case "qk-norm-extra":
            norm: Normalise = "layer_norm" if "LayerNorm" in said else "rms"
            made, known = replace(made, norm=norm), "q and k" in said
        case "rope-missing" | "qk-norm-missing":
            known = False
        case _:
            pass
    if cause not in ("qk-swapped", "softmax-axis") and not _is_files(model, subject):
        ahead = _ahead(model, subject)
        own = about.understood
        plain = not own.masks and own.lengths is None and layer.window is None and layer.chunk is None
        known = plain and (model.seen is None or ahead is not None)
        made = replace(made, mask=False, ahead=ahead)
    if bent or completed or not known:
        raise NoCodeError("No short program undoes this cause: {cause}.", cause=cause or "window")
    return made


def _ahead(model: Model, subject: Subject) -> int | None:
    """Return how many keys after its own every row sees, with all before; None if rows see others."""
    if model.seen is None:
        return None
    at = subject.positions[spread_rows(len(subject.positions), model.seen.shape[1])]
    for ahead in (1, 0, -1, subject.shift, -subject.shift):
        if np.array_equal(
            model.seen, np.broadcast_to(places(model.seen.shape[-1]) <= at[:, np.newaxis] + ahead, model.seen.shape)
        ):
            return ahead
    return None


def _is_files(model: Model, subject: Subject) -> bool:
    """Return whether the keys that a model lets rows see are those of the file."""
    seen: BoolArray | None = as_stored(subject).seen
    if seen is None or model.seen is None:
        return seen is model.seen
    chosen = spread_rows(seen.shape[1], model.seen.shape[1])
    return np.array_equal(seen[:, chosen], model.seen)


def evidence_lines(capture: CaptureFile, about: HeadSubject, reader: Reader, kind: str, value_head: int) -> list[str]:
    """Return the lines that read what attention returned."""
    roles = ("o", "v") if kind == "o" else (kind,)
    lines: list[str] = []
    for role in roles:
        located = capture.stored[about.layer.position].evidence[role]
        group = about.layer.heads // located.size("head")
        head = about.head // group if role != "v" else value_head * located.size("head") // about.layer.kv_heads
        line = reader.vectors(role, [located.described()], head)
        lines.append(f"{line}[..., 0]" if role == "lse" else line)
    return lines


def free_values(best: Found) -> list[str]:
    """Return the lines with the soft-cap or the sink that an explanation found."""
    theta = best.fit.theta
    if best.model.free_softcap:
        return [f"cap = {math.exp(theta[-1]):.10g}"]
    return [f"sink = {theta[-1]:.10g}"] if best.model.free_sink else []
