"""The program of two heads that are compared: the figures of both, and how far their weights are apart."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ....captures.capture import Layer
from ....captures.head import CaptureFile, read_head
from ....captures.heads import subject_of
from ....captures.rules import file_rule
from ....diagnosis.causes.hypothesis import as_stored
from ....diagnosis.comparing.pairing import common_tokens
from ....diagnosis.comparing.processing import compare_processing
from ....diagnosis.comparing.results import FIGURES, STAGES, HeadComparison
from ....diagnosis.comparing.score_change import ScoreChange, limit, score_change
from ....diagnosis.reading import read_for_comparison
from ....diagnosis.subject import Subject
from ....diagnosis.verdict import Examined
from ....parameters import Parameters
from ..parts.attention import weight_lines
from ..parts.statistics import CODE, Code, Rows, statistics_code
from ..program import (
    WIDEST,
    Dialect,
    NoCodeError,
    Piece,
    assembled,
    expected,
    number,
    printing_rows,
    returned,
    shown,
)
from .explained import evidence_lines, explained, free_values
from .loading import loaded, without_unused

_ROWS = 64  # of a head that statistics are taken over, as in core/diagnosis/comparing/figures.py
_CODE = CODE | {"spread": Code("np.sqrt({row_variance}).mean()", "{row_variance}.sqrt().mean()")}
_NAMES = [name for name in FIGURES if name != "multiplier"]

_KL, _MOVED, _RELATED = "KL, nats", "other top key", "correlation of q·kᵀ in rows"
# Of the weights p and r: their divergence, and the share of rows whose largest weight is on another key.
_APART: dict[Dialect, str] = {
    "python": """\
kl = (p * (np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(r, 1e-45)))).sum(-1) - p.sum(-1) + r.sum(-1)
there = np.take_along_axis(p, r.argmax(-1)[..., None], -1)[..., 0]
print(f"{kl:{wide}}{kl.mean():12.4g}")
print(f"{moved:{wide}}{(there < 0.99 * p.max(-1)).mean():12.4g}")""",
    "torch": """\
kl = (p * (p.clamp(min=1e-300).log() - r.clamp(min=1e-45).log())).sum(-1) - p.sum(-1) + r.sum(-1)
there = p.gather(-1, r.argmax(-1, keepdim=True))[..., 0]
print(f"{kl:{wide}}{kl.mean():12.4g}")
print(f"{moved:{wide}}{(there < 0.99 * p.amax(-1)).double().mean():12.4g}")""",
}
# Of the scores s and t of all pairs.
_SCORES: dict[Dialect, str] = {
    "python": """\
s, t = (x - x.mean(-1, keepdims=True) for x in (s, t))
print(f"{related:{wide}}{(s * t).mean() / np.sqrt((s**2).mean() * (t**2).mean()):12.4g}")""",
    "torch": """\
s, t = (x - x.mean(-1, keepdim=True) for x in (s, t))
print(f"{related:{wide}}{(s * t).mean() / ((s**2).mean() * (t**2).mean()).sqrt():12.4g}")""",
}


@dataclass(frozen=True)
class _Side:
    """One of the two heads, as lines of the function that returns its scores, logits and weights."""

    path: str
    scale: str
    lines: Sequence[str]
    body: Sequence[str]
    rows: Rows
    as_said: bool  # whether q and k are multiplied as they are stored


def pair_code(reference: CaptureFile, test: CaptureFile, head: HeadComparison, dialect: Dialect, command: str) -> str:
    """Return the program that prints the figures of two heads; raise NoCodeError if there is none."""
    layers, heads, captures = (head.layer, head.test_layer), (head.head, head.test_head), (reference, test)
    if head.reference is None or head.test is None:
        raise NoCodeError("No code: {reason}.", reason=head.stages[0].says)
    subjects = [
        read_for_comparison(capture, layer, at) for capture, layer, at in zip(captures, layers, heads, strict=True)
    ]
    common = common_tokens(reference, test, *layers)
    one, other = subjects
    whole = all(each.whole and each.q.shape[0] == layer.batch for each, layer in zip(subjects, layers, strict=True))
    same = common.sameness == "same"
    if common.sameness == "prefix" or not whole or (same and one.scores.shape != other.scores.shape):
        raise NoCodeError("No code: only some of the rows of these heads are compared.")
    scores = score_change(one, other, limit(first=head.layer.position == 0)) if same else None
    process = compare_processing(one, other, layers, 1.0 if scores is None else scores.factor, comparable=same)
    sides = [
        _side(capture, layer, at, subject, examined, multiplier, dialect)
        for capture, layer, at, subject, examined, multiplier in zip(
            captures, layers, heads, subjects, (process.reference, process.test), process.multipliers, strict=True
        )
    ]
    return _program(head, sides, scores if same else None, dialect, [*_comments(head, command)])


def _comments(head: HeadComparison, command: str) -> Sequence[str]:
    """Return the command, and what differs first."""
    place = f"layer {head.layer.index}, head {head.head}"
    says = "nothing differs" if head.first is None else f"{STAGES[head.first.name]}: {head.first.says}"
    return [command, *textwrap.wrap(f"{place}: {says}", WIDEST)]


def _side(
    capture: CaptureFile,
    layer: Layer,
    head: int,
    subject: Subject,
    examined: Examined,
    multiplier: float,
    dialect: Dialect,
) -> _Side:
    """Return the lines of one head, as `weights_of` of core/diagnosis/comparing/figures.py computes its weights."""
    about = subject_of(layer, head, read_head(capture, layer, head), [file_rule(layer)])
    model, hypothesis, scale = as_stored(subject), None, multiplier
    best = None if examined.trial is None else examined.trial.best
    if best is not None and math.isfinite(best.multiplier) and best.model.axis == -1:
        if best.hypothesis is None and examined.verdict.verdict != "undecided":
            scale = best.multiplier
        elif best.hypothesis is not None and not best.hypothesis.whole:
            model, hypothesis, scale = best.model, best.hypothesis, best.multiplier
    found = explained(about, subject, model, hypothesis, dialect)
    free = free_values(best) if best is not None and hypothesis is not None else []
    weights = any(each.kind == "weights" for each in subject.evidence)
    lines = [
        *found.lines,
        *free,
        *(evidence_lines(capture, about, found.loaded.reader, "weights", 0) if weights else []),
    ]
    sampled = layer.queries > _ROWS
    body = [*found.body]
    if found.altered:
        body.insert(len(body) - found.masked, "raw = z")
    if sampled:
        lines.append(
            f"rows = np.unique(np.linspace(m - 1, 0, {_ROWS}).round().astype(int))  # those that are compared"
        )
        body += ["raw = raw[:, rows]"] if found.altered else []
        body.append("z = z[:, rows]")
    body += [f"p = weights{'[:, rows]' * sampled}"] if weights else weight_lines(found.parameters, dialect)
    hides = found.loaded.hides
    if found.altered:  # figures are of the keys that the file shows
        hides = loaded(about, dialect).hides
        body += [*hides.lines, "z = raw"]
        if hides.hides:
            where = (
                "z = np.where({hidden}, -np.inf, z)"
                if dialect == "python"
                else "z = z.masked_fill({hidden}, -torch.inf)"
            )
            body.append(where.format(hidden="hidden[..., rows, :]" if sampled else "hidden"))
    rows = Rows(hides.some_rows, hides.hides)
    path = repr(str(layer.path or capture.path))
    return _Side(path, number(scale), [each.replace(path, "path") for each in lines], body, rows, hypothesis is None)


def _program(
    head: HeadComparison, sides: Sequence[_Side], scores: ScoreChange | None, dialect: Dialect, comments: list[str]
) -> str:
    """Return the program; `scores` are None if the texts are not the same."""
    one, other = sides
    rows = Rows(one.rows.some or other.rows.some, one.rows.hides or other.rows.hides)
    related = scores is not None and not rows.hides and one.as_said and other.as_said
    alike = (one.lines, one.body) == (other.lines, other.body)
    functions = ["attention"] if alike else ["attention", "other_attention"]
    pieces = [
        _function(f"{name}(path, scale)", [*side.lines, *side.body, f"return z, p{', q @ k.mT' * related}"])
        for name, side in zip(functions, sides, strict=False)
    ]
    names = [name for name in _NAMES if getattr(head.reference, name) is not None]
    needs, expressions = statistics_code(Parameters(precision="float64"), names, [], dialect, rows, _CODE)
    expressions = [each.replace("log(n)", "log(p.shape[-1])") for each in expressions]  # of all keys
    before = rows.lines(names, dialect)
    if rows.some:
        seen = "np.isfinite(z).any(-1)" if dialect == "python" else "z.isfinite().any(-1)"
        before[0] = f"z, p = z[{seen}], p[{seen}]  # rows that see a key"
    pieces.append(_function("figures(z, p)", [*before, *needs, *returned(expressions)]))
    calls = [
        f"{name}({side.path}, {side.scale})" for name, side in zip((functions[0], functions[-1]), sides, strict=True)
    ]
    ends = (", s", ", t") if related else ("", "")
    pieces.append(Piece(f"z, p{ends[0]} = {calls[0]}\ny, r{ends[1]} = {calls[1]}"))
    wanted = {
        FIGURES[name]: [shown(getattr(head.reference, name)), shown(getattr(head.test, name))] for name in names
    }
    end = printing_rows([*wanted], ["figures(z, p)", "figures(y, r)"])
    words = {"kl": _KL, "moved": _MOVED, "related": _RELATED}
    if scores is not None and not rows.some and head.divergence is not None:
        end += _filled(_APART[dialect], words)
        wanted |= {_KL: [shown(head.divergence), ""], _MOVED: [shown(head.changed_rows), ""]}
    if scores is not None and related:
        end += _filled(_SCORES[dialect], words)
        wanted[_RELATED] = [shown(scores.correlation), ""]
    return without_unused(assembled(comments, [pieces], [*end, *expected(("reference", "other"), wanted)], dialect))


def _function(signature: str, lines: Sequence[str]) -> Piece:
    return Piece("\n".join([f"def {signature}:", *(f"    {line}" for line in lines)]), defines=True)


def _filled(text: str, words: dict[str, str]) -> list[str]:
    """Return lines with the labels of what they print."""
    wide = max(map(len, words.values())) + 2
    for name, label in words.items():
        text = text.replace(f"{{{name}:{{wide}}}}", label.ljust(wide))
    return text.split("\n")
