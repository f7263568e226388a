"""The program of a diagnosis: the multiplier of the scores that fits what attention returned best."""

from __future__ import annotations

import textwrap

from ....captures.capture import HeadSubject, Layer
from ....captures.head import CaptureFile, read_head
from ....captures.heads import subject_of
from ....captures.rules import file_rule
from ....diagnosis.configuration import Configuration
from ....diagnosis.fitting.evidence import smallest
from ....diagnosis.fitting.model import Model
from ....diagnosis.reading import file_configuration, read_subject
from ....diagnosis.subject import Subject
from ....diagnosis.trial import Found
from ....diagnosis.verdict import Examined, examine
from ....statistics.measurement import Estimate
from ..program import WIDEST, Dialect, NoCodeError, Piece, assembled, estimated, expected, number
from .explained import evidence_lines, explained
from .loading import Loaded, without_unused

_SEARCH: dict[Dialect, str] = {
    "python": """\
scale = min(10 ** np.linspace(-4, 3, 99), key=lambda scale: (away(scale) ** 2).sum())
for _ in range(30):  # Gauss-Newton steps
    slope = (away(scale * 1.0001) - away(scale)) / (scale * 0.0001)
    scale = scale - (away(scale) * slope).sum() / (slope**2).sum()""",
    "torch": """\
scale = min(10 ** torch.linspace(-4, 3, 99).double(), key=lambda scale: (away(scale) ** 2).sum())
for _ in range(30):  # Gauss-Newton steps
    slope = (away(scale * 1.0001) - away(scale)) / (scale * 0.0001)
    scale = scale - (away(scale) * slope).sum() / (slope**2).sum()""",
}
_WORDS = {"lse": "the log-sum-exp of rows", "weights": "ln of the weights, up to a constant in each row",
          "o": "the output"}  # fmt: skip


def diagnosis_code(
    capture: CaptureFile, layer: Layer, head: int, given: Configuration | None, dialect: Dialect, command: str
) -> str:
    """Return the program that prints the multiplier of a head; `given` is the user's configuration.

    Raise CaptureError if the head cannot be read, and NoCodeError if there is no evidence, no multiplier explains it,
    or what was done takes more than a short program.
    """
    subject = read_subject(capture, layer, head, file_configuration(capture), given)
    examined = examine(subject, given)
    verdict = examined.verdict
    best = _explanation(examined)
    about = subject_of(layer, head, read_head(capture, layer, head), [file_rule(layer)])
    comments = [command, *textwrap.wrap(f"layer {layer.index}, head {head}: {verdict.says}", WIDEST)]
    assert verdict.evidence is not None
    assert verdict.multiplier is not None
    text = _program(capture, about, verdict.evidence, best, subject, dialect)
    label = "multiplier of q k"
    wanted = expected(("",), {label: [estimated(Estimate(verdict.multiplier, verdict.multiplier_error))]})
    end = [f'print(f"{label}  {{scale:12.4g}}")', *wanted]
    return without_unused(assembled(comments, text, end, dialect))


def _explanation(examined: Examined) -> Found:
    """Return the explanation whose multiplier a program can find; raise NoCodeError if there is none."""
    verdict, trial = examined.verdict, examined.trial
    if verdict.verdict == "no-evidence":
        raise NoCodeError("No code: {reason}.", reason=verdict.says)
    if verdict.verdict in ("undecided", "unexplained") or trial is None or verdict.multiplier is None:
        raise NoCodeError("No code: {reason}.", reason=verdict.says)
    return trial.best


def _program(
    capture: CaptureFile, about: HeadSubject, kind: str, best: Found, subject: Subject, dialect: Dialect
) -> list[list[Piece]]:
    """Return the pieces that read the head and what attention returned, and find the multiplier."""
    model = best.model
    found = explained(about, subject, model, best.hypothesis, dialect)
    lines = [*found.lines, *evidence_lines(capture, about, found.loaded.reader, kind, found.value_head)]
    body = [*found.body]
    if model.axis == -2 and kind != "weights":
        body.append("z = z.mT  # softmax over queries")
    body += _away(kind, model, found.masked, found.loaded, dialect, subject)
    heading = f"def away(scale):  # from the file: {_WORDS[kind]}"
    function = Piece("\n".join([heading, *(f"    {line}" for line in body)]), defines=True)
    return [[Piece("\n".join(lines)), function, Piece(_SEARCH[dialect])]]


def _away(kind: str, model: Model, masked: bool, found: Loaded, dialect: Dialect, subject: Subject) -> list[str]:
    """Return the lines that compare logits z with what attention returned."""
    numpy = dialect == "python"
    hides = masked and found.hides.some_rows
    if kind == "weights":
        least = 10 * smallest(subject.evidence[[e.kind for e in subject.evidence].index("weights")].format)
        log = f"np.log(np.maximum(weights, {least:g}))" if numpy else f"weights.clamp(min={least:g}).log()"
        keeps, at = "keepdims" if numpy else "keepdim", model.axis
        where = "np.where" if numpy else "torch.where"
        shown = f"(weights > {least:g}) & ~hidden" if masked else f"weights > {least:g}"
        return [
            f"shown = {shown}",
            f"r = {where}(shown, z - {log}, 0)",
            f"return {where}(shown, r - r.sum({at}, {keeps}=True) / shown.sum({at}, {keeps}=True), 0)",
        ]
    sink = model.sink is not None
    if numpy:
        lines = [f"top = {'np.maximum(z.max(-1, keepdims=True), sink)' if sink else 'z.max(-1, keepdims=True)'}"]
        lines.append("e = np.exp(z - top)")
        total = "e.sum(-1, keepdims=True)" + (" + np.exp(sink - top)" if sink else "")
    else:
        lines, total = list[str](), ""
        if sink:
            lines.append("z = torch.cat([z, torch.full_like(z[..., :1], sink)], -1)")
    if kind == "lse":
        value = f"(np.log({total}) + top)[..., 0]" if numpy else "z.logsumexp(-1)"
        result = f"{value} - lse" if model.lse_factor == 1 else f"{number(model.lse_factor)} * {value} - lse"
        rows = "hidden.all(-1)"
    else:
        shown = "[..., :-1]" if sink and not numpy else ""
        weights = f"e / ({total})" if numpy and sink else f"e / {total}" if numpy else f"z.softmax(-1){shown}"
        if model.axis == -2:
            weights = f"({weights}).mT"
        result = f"({weights}) @ v - o" if numpy and model.axis != -2 else f"{weights} @ v - o"
        rows = "hidden.all(-1)[..., None]"
    if hides:
        zero = f"np.where({rows}, 0, {result})" if numpy else f"({result}).masked_fill({rows}, 0)"
        return [*lines, f"return {zero}  # no key is seen"]
    return [*lines, f"return {result}"]
