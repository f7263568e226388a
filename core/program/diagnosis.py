"""The program of a diagnosis: the multiplier that fits what attention returned best, of the computation it found."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray
from ..attention.computation import Computation
from ..attention.visibility import Visibility
from ..captures.capture import HeadSubject, Layer
from ..captures.head import CaptureFile, read_head
from ..captures.heads import subject_of
from ..captures.rules import file_rule
from ..diagnosis.configuration import Configuration
from ..diagnosis.fitting.evidence import smallest
from ..diagnosis.fitting.model import LogitModel
from ..diagnosis.reading import file_configuration, read_subject
from ..diagnosis.subject import Subject, places, some_rows, spread_rows
from ..diagnosis.trial import Candidate
from ..diagnosis.verdict import Examination, examine
from ..scales import Normalise
from ..statistics.measurement import Estimate
from .attention import logit_lines, norm_functions
from .captured import computation_of, row_scales
from .reading import HeadCode, loaded, without_unused
from .text import WIDEST, CodePiece, Dialect, NoCodeError, assembled, estimated, expected, number

_SEARCH = """\
scale = min(10 ** np.linspace(-4, 3, 99, dtype=np.float64), key=lambda scale: (away(scale) ** 2).sum())
for _ in range(30):  # Gauss-Newton steps
    slope = (away(scale * 1.0001) - away(scale)) / (scale * 0.0001)
    scale = scale - (away(scale) * slope).sum() / (slope**2).sum()"""
# Of the multiplier and a soft-cap or sink, which an explanation may have too.
_SEARCH_TWO = """\
scales, others = 10 ** np.linspace(-4, 3, 50, dtype=np.float64), np.linspace(-3, 6, 10, dtype=np.float64)
starts = [(scale, other) for scale in scales for other in others]
theta = np.array(min(starts, key=lambda theta: (away(theta) ** 2).sum()), dtype=np.float64)
for _ in range(50):  # Gauss-Newton steps
    steps = 1e-6 * np.eye(2, dtype=np.float64)
    slope = np.stack([(away(theta + step) - away(theta)).ravel() for step in steps], 1) / 1e-6
    theta = theta - np.linalg.lstsq(slope, away(theta).reshape(-1, 1))[0][:, 0]"""
_WORDS = {"lse": "the log-sum-exp of rows", "weights": "ln of the weights, up to a constant in each row",
          "o": "the output"}  # fmt: skip


@dataclass(frozen=True)
class _HeadExplanation:
    """How the explanation computes a head, where that is not as its file says; see Computation."""

    computation: Computation
    key_head: int
    value_head: int
    rows: bool  # whether the file's multipliers of rows were applied
    ahead: int | None = None  # instead of the file's mask, a row sees keys up to this many after its own
    masked: bool = True  # whether the file's mask was applied
    added: bool = False  # whether it was added to the logits, as 1 and 0, instead of hiding keys


def diagnosis_code(
    capture: CaptureFile, layer: Layer, head: int, given: Configuration | None, dialect: Dialect, command: str
) -> str:
    """Return the program that prints the multiplier of a head; `given` is the user's configuration.

    Raise CaptureError if the head cannot be read, and NoCodeError if there is no evidence, no multiplier explains it,
    or what was done takes more than a short program.
    """
    subject = read_subject(capture, layer, head, file_configuration(capture), given)
    examined = examine(subject, given)
    verdict, best = examined.verdict, _explanation(examined)
    assert verdict.evidence is not None
    assert verdict.multiplier is not None
    about = subject_of(layer, head, read_head(capture, layer, head), [file_rule(layer)])
    model = best.model
    said = "scale-by-position" if subject.facts.same_rows else "window"  # by the configuration
    cause = said if best.hypothesis is None else best.hypothesis.cause
    made = _explained(about, subject, model)
    if made is None:
        raise NoCodeError("No short program undoes this cause: {cause}.", cause=cause)
    values = {"multiplier of q k": "theta[0]" if _two(model) else "scale"}
    found = {"multiplier of q k": [estimated(Estimate(verdict.multiplier, verdict.multiplier_error))]}
    if _two(model):
        name, value, error = "sink", float(best.fit.theta[-1]), float(best.fit.errors[-1])
        if model.free_softcap:
            name, value = "soft-cap", math.exp(value)
            error *= value
        values[name] = "exp(theta[1])" if model.free_softcap else "theta[1]"
        found[name] = [estimated(Estimate(value, error if math.isfinite(error) else None))]
    blocks = [_pieces(capture, about, verdict.evidence, made, model, subject, dialect)]
    comments = [command, *textwrap.wrap(f"layer {layer.index}, head {head}: {verdict.says}", WIDEST)]
    end = [f'print(f"{label:19}{{{text}:12.4g}}")' for label, text in values.items()]
    return without_unused(assembled(comments, blocks, [*end, *expected(("",), found)], dialect))


def _explanation(examined: Examination) -> Candidate:
    """Return the explanation whose multiplier a program can find; raise NoCodeError if there is none."""
    verdict, trial = examined.verdict, examined.trial
    unknown = verdict.word == "undecided" and (
        verdict.conflict or not verdict.also
    )  # else what is not known is what is intended
    if unknown or verdict.word in ("no-evidence", "unexplained") or trial is None or verdict.multiplier is None:
        raise NoCodeError("No code: {reason}.", reason=verdict.says)
    return trial.best


def _two(model: LogitModel) -> bool:
    """Return whether an explanation has a soft-cap or a sink that is found with the multiplier."""
    return model.free_softcap or model.free_sink


def _explained(about: HeadSubject, subject: Subject, model: LogitModel) -> _HeadExplanation | None:
    """Return the computation whose logits are those of a fitted model; None if a short program has none."""
    layer = about.layer
    completed = subject.facts.window is not None and (layer.window is None or layer.window[0] is None)
    added = _is_added(subject, model)
    several = len(model.inner) != 1 or (bool(model.outer) and not added) or (_two(model) and model.axis == -2)
    if several or completed or (model.free_softcap and model.free_sink):
        return None
    [wanted] = model.inner
    made = next(
        (
            made
            for made, scores in _edits(about, subject, wanted.shape[1])
            if scores.shape == wanted.shape and np.allclose(scores, wanted, rtol=1e-9, atol=1e-12)
        ),
        None,
    )
    if made is None or (made.rows and subject.facts.same_rows and subject.row_scales is not None):
        return None
    c = replace(made.computation, axis=model.axis)
    value_head = made.value_head if model.v is None else made.key_head
    made = replace(made, computation=c, value_head=value_head, added=added)
    if added or _sees(subject, model):
        return made
    ahead = _ahead(subject, model)
    plain = not about.extras.masks and about.extras.lengths is None and layer.window is layer.chunk is None
    return replace(made, masked=False, ahead=ahead) if plain and (model.seen is None or ahead is not None) else None


def _edits(about: HeadSubject, subject: Subject, rows: int) -> Iterator[tuple[_HeadExplanation, FloatArray]]:
    """Yield edits of what the file says of scores, with the scores of as many rows."""
    heads, kv_heads = about.layer.heads, about.layer.kv_heads
    some = some_rows(subject, spread_rows(len(subject.positions), rows))
    norms: list[tuple[Normalise, Normalise]] = [("rms", "rms"), ("layer_norm", "layer_norm"), ("rms", "none"),
                                                ("none", "rms")]  # fmt: skip
    edits = [Computation(), *(Computation(norms=norm) for norm in norms)]
    edits += [Computation(swapped=True)] if subject.q.shape == subject.k.shape else []
    edits += [] if subject.tiled is None else [Computation(tiled=True)]
    for c in edits:
        k = some.k if subject.tiled is None or not c.tiled else subject.tiled()[0]
        q, k = c.vectors(subject.q if c.swapped else some.q, k)
        scores = c.scores(q, k)
        value_head = Computation().key_head(about.head, heads, kv_heads)
        for scaled in (True, False):
            made = _HeadExplanation(c, c.key_head(about.head, heads, kv_heads), value_head, scaled)
            if scaled and some.row_scales is not None:
                yield made, scores * some.row_scales[..., np.newaxis]
            else:
                yield made, scores


def _is_added(subject: Subject, model: LogitModel) -> bool:
    """Return whether a model adds the file's mask to the logits instead of hiding keys."""
    if subject.seen is None or model.seen is not None or len(model.outer) != 1:
        return False
    rows = spread_rows(subject.seen.shape[1], model.outer[0].shape[1])
    return np.array_equal(subject.seen[:, rows], model.outer[0])


def _sees(subject: Subject, model: LogitModel) -> bool:
    """Return whether the keys that a model lets rows see are those of the file."""
    if subject.seen is None or model.seen is None:
        return subject.seen is model.seen
    return np.array_equal(subject.seen[:, spread_rows(subject.seen.shape[1], model.seen.shape[1])], model.seen)


def _ahead(subject: Subject, model: LogitModel) -> int | None:
    """Return how many keys after its own every row sees, with all before; None if rows see others."""
    if model.seen is None:
        return None
    at = subject.positions[spread_rows(len(subject.positions), model.seen.shape[1])]
    keys = places(model.seen.shape[-1])
    for ahead in (1, 0, -1, subject.shift, -subject.shift):
        if np.array_equal(model.seen, np.broadcast_to(keys <= at[:, np.newaxis] + ahead, model.seen.shape)):
            return ahead
    return None


def _pieces(
    capture: CaptureFile,
    about: HeadSubject,
    kind: str,
    made: _HeadExplanation,
    model: LogitModel,
    subject: Subject,
    dialect: Dialect,
) -> Sequence[CodePiece]:
    """Return the pieces that read the head and what attention returned, and find the multiplier."""
    layer = about.layer
    if not made.masked:
        about = replace(about, layer=replace(layer, causal=None))
    code = loaded(about, dialect, by_position=made.ahead is not None, key_head=made.key_head, masked=made.masked)
    c = computation_of(about, code)
    c = replace(
        c,
        swapped=made.computation.swapped,
        norms=made.computation.norms,
        axis=made.computation.axis,
        softcap=model.softcap,
        sink=model.sink,
        biases=c.biases if model.bias is not None else (),
        visibility=Visibility(0, places(0)) if made.ahead is not None else c.visibility,
    )
    lines = [*code.lines]
    if about.extras.scales is not None and made.rows and subject.row_scales is not None:
        scale = number(subject.facts.scale or 1.0)
        lines.append(f"q = q * ({row_scales(about, code)} / {scale})  # of each query")
    if made.ahead is not None:
        ahead = f" + {made.ahead}".replace("+ -", "- ") if made.ahead else ""
        lines.append(f"hidden = np.arange(n) > at[:, None]{ahead}")
    for role in ("o", "v") if kind == "o" else (kind,):
        located = capture.stored[layer.position].evidence[role]
        group = layer.heads // located.size("head")
        head = about.head // group if role != "v" else made.value_head * located.size("head") // layer.kv_heads
        line = code.reader.vectors(role, [located.described()], head)
        lines.append(f"{line}[..., 0]" if role == "lse" else line)
    body = ["scale, cap = theta[0], exp(theta[1])"] if model.free_softcap else []
    body += ["scale, sink = theta"] if model.free_sink else []
    c = replace(c, visibility=None) if made.added else c
    body += logit_lines([c], "cap" * model.free_softcap)
    body += ["z = np.where(hidden, z, z + 1)  # the mask was added"] * made.added
    body += _away_from_weights(c, model, subject) if kind == "weights" else _away(kind, c, model, code)
    heading = f"def away({'theta' if _two(model) else 'scale'}):  # from the file: {_WORDS[kind]}"
    function = CodePiece("\n".join([heading, *(f"    {line}" for line in body)]), defines=True)
    search = CodePiece(_SEARCH_TWO if _two(model) else _SEARCH)
    return [CodePiece("\n".join(lines)), norm_functions([c]), function, search]


def _away(kind: str, c: Computation, model: LogitModel, code: HeadCode) -> list[str]:
    """Return the lines that compare logits z with the log-sum-exp or the output of attention."""
    sink = model.free_sink or c.sink is not None
    lines = ["z = z.mT  # softmax over queries"] if c.axis == -2 else []
    lines.append(f"top = z.max(-1, keepdims=True){'.clip(sink)' * sink}")
    lines.append("e = np.exp(z - top)")
    total = f"e.sum(-1, keepdims=True){' + np.exp(sink - top)' * sink}"
    if kind == "lse":
        factor = "" if model.lse_factor == 1 else f"{number(model.lse_factor)} * "
        result, rows = f"{factor}(np.log({total}) + top)[..., 0] - lse", "hidden.all(-1)"
    else:
        weights = f"(e / ({total}))"
        result, rows = f"{weights}{'.mT' * (c.axis == -2)} @ v - o", "hidden.all(-1)[..., None]"
    if c.visibility is not None and code.some_rows:
        result = f"np.where({rows}, 0, {result})  # no key is seen"
    return [*lines, f"return {result}"]


def _away_from_weights(c: Computation, model: LogitModel, subject: Subject) -> list[str]:
    """Return the lines that compare logits z with ln of the weights."""
    [stored] = [each.format for each in subject.evidence if each.kind == "weights"]
    least = f"{10 * smallest(stored):g}"
    lines = [f"shown = (weights > {least}){' & ~hidden' * (c.visibility is not None)}"]
    log = f"np.log(weights.clip({least}))"
    if model.free_sink:  # which the sums of rows tell
        total = "np.exp(z - top).sum(-1, keepdims=True) + np.exp(sink - top)"
        return [
            *lines,
            "top = z.max(-1, keepdims=True).clip(sink)",
            f"return np.where(shown, z - top - np.log({total}) - {log}, 0)",
        ]
    mean = f"r.sum({c.axis}, keepdims=True) / shown.sum({c.axis}, keepdims=True)"
    return [*lines, f"r = np.where(shown, z - {log}, 0)", f"return np.where(shown, r - {mean}, 0)"]
