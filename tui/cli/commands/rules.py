"""attn-tui rules: all scale rules on the same queries and keys, mechanisms over d_k, or weightings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ....core.lab.results import NOT_OF_MECHANISMS, SETTINGS, SORTABLE, Order, RuleRow
from ....core.lab.weighting.results import NOT_OF_WEIGHTINGS
from ....core.message import joined, message
from ....core.parameters import FIELD, FIELDS, Parameters, parameters_from
from ...compute.question import rules_line
from ...settings.parse import UsageError, no_effect, parameter_values
from ..output import CODE, LISTED, Output
from ..parser import Command, Given, Parser
from ..working import USUAL, Work, add_work, complete, results_of, work_of

if TYPE_CHECKING:
    from ...panes.rules.exported import Result

_ALWAYS = ("d_k", "n_keys", "n_queries", "batch", "components", "precision", "seed")  # in every title
_ALL = 1000  # lines, more than there are rules and titles


@dataclass(frozen=True)
class RulesRequest:
    """What is compared; the rule of `parameters` is marked."""

    parameters: Parameters
    order: Order
    mechanisms: bool = False  # compare mechanisms over d_k instead of scale rules
    remarks: tuple[str, ...] = ()
    weightings: bool = False  # compare weightings instead
    work: Work = USUAL


def _add_options(parser: Parser) -> None:
    title = "what to compare"
    parser.add(
        title,
        "--sort",
        metavar="COLUMN",
        suggest=SORTABLE,
        help=message(
            "the column to sort by, largest first: {columns}; default: rule, in the order of `attn-tui help rules`",
            columns=", ".join(SORTABLE),
        ),
    )
    parser.add(title, "--reverse", action="store_true", help="reverse the order")
    parser.add(
        title,
        "--mechanisms",
        action="store_true",
        help="compare mechanisms over d_k instead: the dot product unscaled, scaled and with a sink, bilinear, "
        "additive, cosine, and the bounds of their scores",
    )
    parser.add(
        title,
        "--weightings",
        action="store_true",
        help="compare what makes weights of the same logits instead: softmax, with a sink, sigmoid, entmax, "
        "sparsemax, differential and forgetting attention, QK-Clip",
    )
    add_work(parser)
    parser.add_output((*LISTED, *CODE))
    parser.add_fields(FIELDS)


def _request(given: Given) -> RulesRequest:
    return replace(_compared(given), work=work_of(given))


def _compared(given: Given) -> RulesRequest:
    values = parameter_values(given)
    parameters = parameters_from(values)
    column = given.get("sort", "rule").strip().replace("-", "_")
    if column not in SORTABLE:
        raise UsageError(
            "--sort: must be one of {columns}, not {text!r}", columns=", ".join(SORTABLE), text=given["sort"]
        )
    if given["mechanisms"] and given["weightings"]:
        raise UsageError("--weightings: not with --mechanisms; ask for one of them")
    if given["weightings"]:
        applied = [name for name in values if name not in NOT_OF_WEIGHTINGS]
        idle = [FIELD[name].option for name in values if name in NOT_OF_WEIGHTINGS]
        idle += [FIELD[n].option for n in applied if n != "layer" and not FIELD[n].applies(parameters)]
        idle += [option for option in ("--sort", "--reverse") if given.get(option[2:])]
        return RulesRequest(parameters, Order(), remarks=tuple(map(no_effect, idle)), weightings=True)
    if given["mechanisms"]:
        idle = [FIELD[name].option for name in values if name in NOT_OF_MECHANISMS]
        idle += [option for option in ("--sort", "--reverse") if given.get(option[2:])]
        return RulesRequest(parameters, Order(), True, tuple(map(no_effect, idle)))
    others = [name for name in values if name not in SETTINGS]
    idle = [FIELD[n].option for n in others if n == "against" or not FIELD[n].applies(parameters)]
    return RulesRequest(parameters, Order(column, given["reverse"]), False, tuple(map(no_effect, idle)))


def run(request: RulesRequest, output: Output) -> int:
    """Measure and print; return the exit code."""
    from ...panes.rules.exported import code, table

    output.check()
    found = _measured(request, output)
    output.emit(
        lambda: _table(found, output),
        lambda: table(found),
        lambda dialect: code(found, dialect),
    )
    return 0


def _measured(request: RulesRequest, output: Output) -> Result:
    """Measure what is compared."""
    from ....core.lab.rules import faults
    from ....core.tables.rules import MechanismsResult, RulesResult, WeightingsResult
    from ....core.theory.saturation import saturation_of
    from ....core.work.rules import mechanism_parts, rule_parts, weighting_parts

    p, order = request.parameters, request.order
    command = rules_line(
        p, order, request.mechanisms, output.format, output.ascii_only, weightings=request.weightings
    )
    if request.weightings:
        what = message("comparing weightings")
        return WeightingsResult(p, complete(results_of(weighting_parts(p), request.work, what, output)), command)
    if request.mechanisms:
        what = message("comparing mechanisms")
        return MechanismsResult(p, complete(results_of(mechanism_parts(p), request.work, what, output)), command)
    found = complete(results_of(rule_parts(p), request.work, message("measuring scale rules"), output))
    rows = [*faults(p), *(each for each in found if isinstance(each, RuleRow))]
    [curves] = [each for each in found if not isinstance(each, RuleRow)]
    return RulesResult(p, order, rows, curves, saturation_of(p, [row.rule for row in rows]), command)


def _table(found: Result, output: Output) -> str:
    from ....core.tables import rules as tables
    from ....core.tables.table import Command
    from ...panes.rules.mechanisms import mechanism_lines, weighting_lines
    from ...panes.rules.view import HEAD, Shown, left_out, rows_of, table_lines, words_of
    from ...views.grid import IN_CSV
    from ..printing import page

    p, glyphs, width, command = found.parameters, output.glyphs, output.text_width, Command(found.command)
    match found:
        case tables.MechanismsResult():
            return page(
                output, tables.mechanisms_words(p, _ALWAYS), "", mechanism_lines(found.rows, width, glyphs), command
            )
        case tables.WeightingsResult():
            lines, said = weighting_lines(found.rows, width, glyphs), tables.weightings_remarks(p, found.rows)
            return page(output, tables.weightings_words(p, ("scale", *_ALWAYS)), "", lines, "", *said, command)
        case tables.RulesResult():
            rows: Mapping[str, RuleRow] = {row.rule: row for row in found.shown}
            shown = Shown([*rows], rows, found.saturation, found.curves, found.order, p.scale)
            said = tables.remarks(found)
            if missing := left_out(output.width, 0, found.order.column, found.curves):
                columns = joined(map(words_of, missing), ", ")
                said.append(message(IN_CSV, columns=columns))
            height = HEAD + len(rows_of([*rows], found.order, _ALL))
            lines = table_lines(shown, output.width, 0, height, glyphs)
            return page(output, tables.rules_words(p, _ALWAYS), "", lines, "", *said, command)


COMMAND = Command(
    usage="""attn-tui rules [--sort COLUMN] [--reverse] [parameters]
                      [--format FORMAT] [-o FILE]
       attn-tui rules --mechanisms [parameters] [--format FORMAT] [-o FILE]
       attn-tui rules --weightings [parameters] [--format FORMAT] [-o FILE]""",
    description="""\
Apply every scale rule to the same queries and keys and print one line per rule:
its multiplier, its status in a word, the standard deviation of its logits,
entropy, largest weight, the typical gradient of a query, dead rows, the
deviation over √(2 ln n), at which softmax saturates, scores that the number
format cannot hold, and entropy over d_k. A row holds what
attn-tui report --scale RULE measures; entropy over d_k is measured on a sample
of the rows, with nested draws.

With --mechanisms, compare mechanisms at d_k 16 to 1024 instead, each under its
usual rule and without a soft-cap: their statistics, the largest score drawn,
and the bound of their scores, if they have one.

With --weightings, compare what makes weights of the same scaled logits: the sum
of the weights, their entropy, the largest weight, exact zeros, one-hot rows and
the norm of the Jacobian. Differential attention's λ is that of --layer, and
forgetting attention needs --mask causal.

The last line is the command that prints the same output again.""",
    examples="""\
examples:
  attn-tui rules                                    d_k 64, 128 keys
  attn-tui rules --d-k 512 --sort entropy_fraction  another width, sorted
  attn-tui rules --precision float16 --sort score-overflow
  attn-tui rules --position 131071 --context-factor 32 --format markdown
  attn-tui rules --format json | jq '.rules[] | [.rule, .multiplier]'
  attn-tui rules --mechanisms --format csv -o mechanisms.csv
  attn-tui rules --weightings --mask causal
""",
    add_options=_add_options,
    request=_request,
    run=run,
)
