"""attn-tui train: what the scale does to learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....core.errors import InputError, did_you_mean
from ....core.field import Field
from ....core.formula import FormulaError
from ....core.grid import parse_grid
from ....core.message import counted, message, name, reason_of
from ....core.questions.parse import UsageError, value_of
from ....core.questions.question import option
from ....core.questions.train import RunRace
from ....core.scales import SCALE_RULES, ScaleName
from ....core.training.settings import (
    ACCEPTED,
    RACE_FIELD,
    RACE_FIELDS,
    RATES,
    Race,
    fault_of,
    parse_rules,
)
from ..output import CODE, LISTED, Output
from ..parser import CliCommand, Given
from ..working import SERIAL, CommandRequest, answer

if TYPE_CHECKING:
    from ....core.tables.table import TextGrid
    from ....core.training.snapshot import RaceSnapshot
    from ...views.lines import Line


_RULES = "none,sqrt_d_k,d_k"


@dataclass(frozen=True)
class RaceOptions:
    """The options that no field of a race declares."""

    d_k: str = option(
        "training", "--d-k", "GRID", "widths, such as 16,64,256 (default); at most 1024", default="16,64,256"
    )
    rules: str = option(
        "training",
        "--rules",
        "RULES",
        message("{accepted}; default {rules}", accepted=ACCEPTED, rules=_RULES),
        suggest=SCALE_RULES,
        default=_RULES,
    )


_USUAL = {
    "optimiser": message("{help} Sgd (default) or adam.", help=RACE_FIELD["optimiser"].help),
    "rate": message(
        "{help} Default {sgd:g} for sgd, {adam:g} for adam.",
        help=RACE_FIELD["rate"].help,
        sgd=RATES["sgd"],
        adam=RATES["adam"],
    ),
}


def _help(field: Field) -> str:
    usual = field.format(getattr(Race, field.name))
    return _USUAL.get(field.name) or message("{help} Default {usual}.", help=field.help, usual=usual)


def _names(field: Field) -> tuple[str, ...]:
    return field.option, *(["--learning-rate"] if field.name == "rate" else [])


def _request(given: Given) -> CommandRequest[RunRace]:
    try:
        grid = parse_grid(given.get("d_k", RaceOptions.d_k), RACE_FIELD["d_k"])
    except InputError as error:
        raise UsageError("{option}: {reason}", option="--d-k", reason=reason_of(str(error), "d_k")) from None
    values: dict[str, Any] = {
        field.name: value_of(field, given[field.name], field.option)
        for field in RACE_FIELDS[1:]
        if field.name in given
    }
    values.setdefault("rate", RATES[values.get("optimiser", Race.optimiser)])
    rules = _rules(given.get("rules", _RULES))
    races = tuple(Race(d_k, rules, **values) for d_k in grid)
    for race in races:
        if fault := fault_of(race):
            raise UsageError("--rules: {reason}", reason=fault)
    return CommandRequest(RunRace(races[0], tuple(grid[1:])), SERIAL)


def _rules(text: str) -> tuple[ScaleName, ...]:
    try:
        return parse_rules(text)
    except FormulaError:
        raise
    except InputError as error:
        words = [part.strip() for part in text.split(",")]
        wrong = next((word for word in words if repr(word) in str(error)), "")
        hint = did_you_mean(wrong, [rule for rule in SCALE_RULES if rule != wrong]) if wrong else ""
        raise UsageError(
            "--rules: {reason}{hint}; must be {accepted}",
            reason=reason_of(str(error), "rules"),
            hint=hint,
            accepted=ACCEPTED,
        ) from None


def run(request: CommandRequest[RunRace], output: Output) -> int:
    """Run the races and print how each rule did; return the exit code."""
    output.check()
    races = answer(request.question, request.work, message("training"), output)
    return output.answer(request.question, races, lambda: _table(races, output))


def _table(races: Sequence[RaceSnapshot], output: Output) -> str:
    """Return a table of the races, and what weights recall if they are used under another rule."""
    from ....core.tables.runs import results_grid
    from ....core.tables.table import TextGrid
    from ...views.grid import IN_CSV, IN_JSON, table_lines
    from ..printing import page

    glyphs, race = output.glyphs, races[0].race
    words = [
        message("associative recall, 16 pairs, 8 labels"),
        message("{optimiser}, learning rate {rate:g}", optimiser=race.optimiser, rate=race.rate),
        counted("{number} step", "{number} steps", race.steps),
        counted("{number} seed", "{number} seeds", race.seeds),
    ]

    def lines(grid: TextGrid, note: str) -> list[Line]:
        named = grid._replace(lines=[[d_k, name(rule), *figures] for d_k, rule, *figures in grid.lines])
        return table_lines(named, glyphs, output.width if output.on_screen else None, {1}, True, note)

    parts = lines(results_grid(races), IN_CSV)
    if len(race.rules) == 1:
        return page(output, words, "", parts)
    rows: list[list[str]] = []
    for each in races:
        assert each.used is not None, "the race has ended"
        for rule, shares in zip(each.race.rules, each.used, strict=True):
            rows.append([str(each.race.d_k), rule, *(f"{100 * share:.0f} %" for share in shares)])
    used_with = TextGrid(["d_k", message("trained with"), *map(name, race.rules)], rows)
    text = message("Recalled if weights trained under a rule are used under another:")
    return page(output, words, "", parts, "", text, lines(used_with, IN_JSON))


COMMAND = CliCommand(
    usage="""attn-tui train [--d-k GRID] [--rules RULES] [--optimizer NAME] [--lr X]
                        [--steps N] [--seeds N] [--warm-up N]
                        [--format FORMAT] [-o FILE]""",
    description="""\
Train one layer of attention to recall labels, under several scale rules: the
same task, the same seeds, the same initial weights, with components of q and k
of variance 1. Print for each rule the loss at the end, the share of labels that
are recalled, the steps until it is 90 %, how many runs diverged, the entropy of
the attention before and after, and the norm of the first gradient of W_q and
W_k; then what is recalled if weights trained under one rule are used under
another.""",
    examples="""\
examples:
  attn-tui train                                  without a scale, and with two
  attn-tui train --rules none,sqrt_d_k --lr 5 --d-k 64
  attn-tui train --optimizer adam --rules sqrt_d_k,rms_sqrt_d_k --format json
  attn-tui train --rules '0.05,sqrt_d_k,log(n)/sqrt(d)'   numbers and formulas
""",
    options=(RaceOptions,),
    add=lambda parser: parser.add_fields(RACE_FIELDS[1:], title="training", help=_help, names=_names),
    request=_request,
    run=run,
    formats=(*LISTED, *CODE),
)
