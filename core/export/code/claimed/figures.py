"""The program of single figures, of a claim, or of a step or question of the tour: the Lab's, and a few others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ....against import settings
from ....claims.claim import Difference, FromLab, FromTrial, Outcome, without_figures
from ....learning.card import Card, Told
from ....learning.figures import Figure, Quotient
from ....parameters import UNSCALED, Parameters
from ....scales import multiplier
from ....statistics.measurement import Column, Estimate
from ..parts.gradients import has_gradients
from ..parts.setting import parts, remarks
from ..parts.statistics import CODE
from ..program import Dialect, NoCodeError, Piece, assembled, estimated, expected, number, shown
from .trials import has_code, trial_expression, trial_functions

_NONE = "No short program makes these measurements."
_RACED = "Training follows rounding where steps are large: such a figure is the same within its errors only."
_NOT_PRINTED = "Not printed: {labels}."


@dataclass(frozen=True)
class Wanted:
    """One figure: its label, where it is measured, and the measured value."""

    label: str
    source: object
    measured: Estimate | None


def claims_code(outcomes: Sequence[Outcome], dialect: Dialect, command: str) -> str:
    """Return the programs of all claims that have one, one after another."""
    found: list[str] = []
    for outcome in outcomes:
        with suppress(NoCodeError):
            found.append(claim_code(outcome, dialect, f"{command}: {outcome.claim.id}"))
    return "\n\n".join(found)


def claim_code(outcome: Outcome, dialect: Dialect, command: str) -> str:
    """Return the program that prints the figures of a claim; raise NoCodeError if there is none."""
    claim = outcome.claim if not outcome.claim.figures else without_figures(outcome.claim)
    if claim.scores:
        return _softmax_code(outcome, dialect, command)
    if not outcome.findings:
        raise NoCodeError("No code: {reason}.", reason=claim.untestable or claim.why)
    wanted = [
        Wanted(finding.label, source, finding.measured or _computed(source, finding.exact))
        for finding, source in zip(outcome.findings, claim.sources, strict=True)
    ]
    return figures_code(wanted, dialect, command)


def _computed(source: object, exact: float | None) -> Estimate | None:
    """Return the value of a measurement that draws nothing."""
    return Estimate(exact, None) if isinstance(source, FromTrial) and exact is not None else None


def card_code(card: Card, figures: Sequence[Figure], dialect: Dialect, command: str) -> str:
    """Return the program that prints figures of a card; raise NoCodeError if there is none."""
    told: Sequence[Told] = card.figures
    wanted = [
        Wanted(one.label, figure.source, one.reading.measured or _computed(figure.source, one.reading.exact))
        for one, figure in zip(told, figures, strict=True)
    ]
    return figures_code(wanted, dialect, command)


def figures_code(figures: Sequence[Wanted], dialect: Dialect, command: str) -> str:
    """Return the program that prints what the Lab measures of these figures; raise NoCodeError if it does none."""
    known = [each for each in figures if _is_known(each, dialect)]
    trials = [each.source for each in known if isinstance(each.source, FromTrial)]
    if not known:
        raise NoCodeError(_NONE)
    wide = max(len(each.label) for each in known) + 2
    places: dict[tuple[Parameters, str], str] = {}  # the expression of a setting's statistic
    blocks: list[list[Piece]] = []
    for side, statistics in _by_setting(known).items():
        columns = [_column(side, statistics)]
        names = [*statistics]
        found = parts([side], columns, names, dialect)
        name = f"x{len(blocks) + 1}"
        places |= {(side, each): f"{name}[{at}]" for at, each in enumerate(names)}
        made = f"{name} = {found.calls[0]}"
        blocks.append([found.values, *found.functions, Piece(found.drawn), found.measure, Piece(made)])
    if trials:
        blocks.append([Piece(trial_functions(trials, dialect), defines=True)])
    prints = [f'print(f"{each.label:{wide}}{{{_expression(each.source, places)}:12.4g}}")' for each in known]
    others = [each.label for each in figures if each not in known]
    head = [_NOT_PRINTED.format(labels=", ".join(others))] if others else []
    if any(each.trial == "raced" for each in trials):
        head.append(_RACED)
    rows = {each.label: [estimated(each.measured or Estimate(None, None))] for each in known}
    said = remarks([side for side, _ in places])
    return assembled([command, *said, *head], blocks, [*prints, *expected(("",), rows)], dialect)


def _is_known(wanted: Wanted, dialect: Dialect) -> bool:
    """Return whether a program can print a figure."""
    if wanted.measured is None or wanted.measured.value is None:
        return False
    if isinstance(wanted.source, FromTrial):
        return has_code(wanted.source)
    sources = _parts_of(wanted.source)
    return bool(sources) and all(_is_printable(source, dialect) for source in sources)


def _is_printable(source: FromLab, dialect: Dialect) -> bool:
    if source.statistic not in CODE:
        return False
    if not source.statistic.startswith("grad_q"):
        return True
    side = _side(source)
    return has_gradients([_column(side, {"grad_q_median": Estimate(1.0, None)})], side, dialect)


def _parts_of(source: object) -> list[FromLab]:
    """Return what a figure is made of; empty if the Lab does not measure all of it."""
    if isinstance(source, FromLab):
        return [source]
    if isinstance(source, Difference | Quotient):
        one, other = _parts_of(source.one), _parts_of(source.other)
        return [*one, *other] if one and other else []
    return []


def _side(source: FromLab) -> Parameters:
    """Return the parameters of the column that a figure is of."""
    return replace(settings(source.parameters)[int(source.scaled)], against=UNSCALED)


def _by_setting(figures: Sequence[Wanted]) -> dict[Parameters, dict[str, Estimate]]:
    """Return the statistics of each setting, in the order in which figures speak of them."""
    found: dict[Parameters, dict[str, Estimate]] = {}
    for each in figures:
        for source in _parts_of(each.source):
            alone = isinstance(each.source, FromLab) and each.measured is not None
            value = each.measured if alone and each.measured is not None else Estimate(1.0, 1.0)
            found.setdefault(_side(source), {}).setdefault(source.statistic, value)
    return found


def _column(side: Parameters, statistics: dict[str, Estimate]) -> Column:
    return Column(side.scale, multiplier(side.scale, side.setting), statistics, {})


def _expression(source: object, places: dict[tuple[Parameters, str], str]) -> str:
    """Return the expression of a figure."""
    if isinstance(source, FromTrial):
        return trial_expression(source)
    if isinstance(source, FromLab):
        return places[_side(source), source.statistic]
    assert isinstance(source, Difference | Quotient), "others have no code"
    sign = "-" if isinstance(source, Difference) else "/"
    return f"{_expression(source.one, places)} {sign} {_expression(source.other, places)}"


def _softmax_code(outcome: Outcome, dialect: Dialect, command: str) -> str:
    """Return the program of the weights of a claim's scores."""
    scores = ", ".join(map(number, outcome.claim.scores))
    made = {
        "python": f"scores = np.array([{scores}])\np = np.exp(scores - scores.max())\np = p / p.sum()",
        "torch": f"p = torch.tensor([{scores}], dtype=torch.float64).softmax(-1)",
    }[dialect]
    labels = [finding.label for finding in outcome.findings if finding.label.startswith("weight of")]
    rows = {finding.label: [shown(finding.exact)] for finding in outcome.findings if finding.label in labels}
    wide = max(map(len, labels)) + 2
    prints = [f'print(f"{label:{wide}}{{p[{place}]:12.4g}}")' for place, label in enumerate(labels)]
    if any(finding.label == "their sum" for finding in outcome.findings):
        prints.append(f'print(f"{"their sum":{wide}}{{p.sum():12.4g}}")')
        rows["their sum"] = [shown(next(each.exact for each in outcome.findings if each.label == "their sum"))]
    return assembled([command], [[Piece(made)]], [*prints, *expected(("",), rows)], dialect)
