"""The program of a diagnosis: the multiplier of the scores that fits what attention returned best."""

from __future__ import annotations

import math
import textwrap

from ....captures.capture import HeadSubject, Layer
from ....captures.head import CaptureFile, read_head
from ....captures.heads import subject_of
from ....captures.rules import file_rule
from ....diagnosis.configuration import Configuration
from ....diagnosis.fitting.model import Model
from ....diagnosis.fitting.rounding import smallest
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
# Of the multiplier and a soft-cap or sink, which an explanation may have too.
_SEARCH_TWO: dict[Dialect, str] = {
    "python": """\
starts = [(scale, other) for scale in 10 ** np.linspace(-4, 3, 50) for other in np.linspace(-3, 6, 10)]
theta = np.array(min(starts, key=lambda theta: (away(theta) ** 2).sum()))
for _ in range(50):  # Gauss-Newton steps
    slope = np.stack([(away(theta + step) - away(theta)).ravel() for step in 1e-6 * np.eye(2)], 1) / 1e-6
    theta = theta - np.linalg.lstsq(slope, away(theta).ravel())[0]""",
    "torch": """\
starts = [(scale, other) for scale in 10 ** np.linspace(-4, 3, 50) for other in np.linspace(-3, 6, 10)]
theta = torch.tensor(min(starts, key=lambda theta: (away(theta) ** 2).sum())).double()
for _ in range(50):  # Gauss-Newton steps
    slope = torch.stack([(away(theta + step) - away(theta)).ravel() for step in 1e-6 * torch.eye(2).double()], 1)
    theta = theta - torch.linalg.lstsq(slope / 1e-6, away(theta).ravel()[:, None]).solution[:, 0]""",
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
    found = {"multiplier of q k": [estimated(Estimate(verdict.multiplier, verdict.multiplier_error))]}
    values = {"multiplier of q k": "theta[0]" if _is_bent(best.model) else "scale"}
    if _is_bent(best.model):
        name, value = "sink", float(best.fit.theta[-1])
        error, values["sink"] = float(best.fit.errors[-1]), "theta[1]"
        if best.model.free_softcap:
            name, value = "soft-cap", math.exp(value)
            error *= value
            del values["sink"]
            values[name] = "exp(theta[1])"
        found[name] = [estimated(Estimate(value, error if math.isfinite(error) else None))]
    end = [f'print(f"{label:19}{{{text}:12.4g}}")' for label, text in values.items()]
    end += expected(("",), found)
    return without_unused(assembled(comments, text, end, dialect))


def _explanation(examined: Examined) -> Found:
    """Return the explanation whose multiplier a program can find; raise NoCodeError if there is none."""
    verdict, trial = examined.verdict, examined.trial
    if verdict.verdict == "no-evidence":
        raise NoCodeError("No code: {reason}.", reason=verdict.says)
    vague = (
        verdict.verdict == "undecided" and not verdict.also
    )  # else the multiplier is known, but not what is intended
    if vague or verdict.verdict == "unexplained" or trial is None or verdict.multiplier is None:
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
    heading = f"def away({'theta' if _is_bent(model) else 'scale'}):  # from the file: {_WORDS[kind]}"
    if model.free_softcap:
        body.insert(0, "scale, cap = theta[0], exp(theta[1])")
    elif model.free_sink:
        body.insert(0, "scale, sink = theta")
    search = _SEARCH_TWO if _is_bent(model) else _SEARCH
    function = Piece("\n".join([heading, *(f"    {line}" for line in body)]), defines=True)
    return [[Piece("\n".join(lines)), function, Piece(search[dialect])]]


def _is_bent(model: Model) -> bool:
    """Return whether an explanation has a soft-cap or a sink that is found with the multiplier."""
    return model.free_softcap or model.free_sink


def _away(kind: str, model: Model, masked: bool, found: Loaded, dialect: Dialect, subject: Subject) -> list[str]:
    """Return the lines that compare logits z with what attention returned."""
    if kind == "weights":
        return _away_from_weights(model, masked, dialect, subject)
    numpy = dialect == "python"
    sink = model.sink is not None or model.free_sink
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
    if masked and found.hides.some_rows:
        zero = f"np.where({rows}, 0, {result})" if numpy else f"({result}).masked_fill({rows}, 0)"
        return [*lines, f"return {zero}  # no key is seen"]
    return [*lines, f"return {result}"]


def _away_from_weights(model: Model, masked: bool, dialect: Dialect, subject: Subject) -> list[str]:
    """Return the lines that compare logits z with ln of the weights."""
    numpy = dialect == "python"
    least = 10 * smallest(subject.evidence[[e.kind for e in subject.evidence].index("weights")].format)
    log = f"np.log(np.maximum(weights, {least:g}))" if numpy else f"weights.clamp(min={least:g}).log()"
    keeps, at = "keepdims" if numpy else "keepdim", model.axis
    where = "np.where" if numpy else "torch.where"
    shown = f"(weights > {least:g}) & ~hidden" if masked else f"weights > {least:g}"
    if model.free_sink:  # which the sums of rows tell
        top = "np.maximum(z.max(-1, keepdims=True), sink)" if numpy else "z.amax(-1, keepdim=True).clamp(min=sink)"
        total = f"np.exp(z - top).sum(-1, {keeps}=True) + np.exp(sink - top)"
        if not numpy:
            total = f"(z - top).exp().sum(-1, {keeps}=True) + (sink - top).exp()"
        logs = f"z - top - np.log({total})" if numpy else f"z - top - ({total}).log()"
        return [f"shown = {shown}", f"top = {top}", f"return {where}(shown, {logs} - {log}, 0)"]
    return [
        f"shown = {shown}",
        f"r = {where}(shown, z - {log}, 0)",
        f"return {where}(shown, r - r.sum({at}, {keeps}=True) / shown.sum({at}, {keeps}=True), 0)",
    ]
