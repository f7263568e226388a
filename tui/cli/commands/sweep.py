"""attn-tui sweep: the statistics of the Lab over many d_k and numbers of keys."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from ....core.grid import is_grid
from ....core.message import joined, message
from ....core.models import MODELS
from ....core.parameters import FIELD, FIELDS, Parameters, parameters_from
from ....core.questions.parse import UsageError, called, no_effect, parameter_values
from ....core.questions.sweep import SweepQuestion
from ..output import CODE, LISTED, Output
from ..parser import CliCommand, Given, Parser, arguments
from ..working import CommandRequest, DryRun, ResultStream, Work, command_request, results_of

if TYPE_CHECKING:
    from ....core.tables.lab import SweepResult
    from ....core.work.sweeps import Predicted

_ALWAYS = ("n_keys", "n_queries", "batch", "scale", "components", "seed")  # in every title


def _add_parameters(parser: Parser) -> None:
    swept = joined([FIELD["n_keys"].help, message("A grid, written as that of --d-k, sweeps it.")])
    parser.add_fields([replace(FIELD["n_keys"], help=swept)], title="grid and precision")
    others = [field for field in FIELDS if field.name not in ("d_k", "n_keys")]
    parser.add_fields(others)
    parser.hidden = {field.name for field in others}
    options = ", ".join(FIELD[name].option for name in ("scale", "against", "model"))
    shared = message("those of `attn-tui help parameters`, such as {options}", options=options)
    parser.add_text(message("parameters"), parser.glyphs.say(shared))


def _request(given: Given) -> CommandRequest[SweepQuestion]:
    keys = given.pop("n_keys").strip() if is_grid(given.get("n_keys", "")) else ""
    width = MODELS[given["model"]].width if given.get("model") in MODELS else Parameters.d_k
    texts = {name: text for name, text in given.items() if name in FIELD}
    first = arguments(
        SweepQuestion,
        given,
        parameters=Parameters(),
        keys=keys,
        **({} if "grid" in given or not keys else {"grid": str(width)}),
    )
    values, target = first.values, first.target
    if keys and values and values[0] == "n_keys":
        raise UsageError(
            "--vary n-keys: --n-keys {n_keys} sweeps the number of keys already; leave out one of them", n_keys=keys
        )
    if values and values[0] == "multiplier":
        texts = {"scale": "custom"} | texts
    question = replace(first, parameters=parameters_from(parameter_values(texts)))
    with called("--d-k", "d_k"):
        _ = question.d_ks
    with called("--n-keys", FIELD["n_keys"].label):
        _ = question.n_keys
    each = question.each
    fields = [FIELD[name] for name in FIELD if name in texts and (values is None or name != values[0])]
    idle = [field.option for field in fields if not any(map(field.applies, each))]
    if values and values[0] in texts:
        idle.append(FIELD[values[0]].option)
    if values and not any(map(FIELD[values[0]].applies, each)):
        idle.append(f"--vary {values[0]}")
    largest = max(p.batch for p in each)
    if target is None:
        idle += [option for option in ("--of", "--most-draws") if option[2:].replace("-", "_") in given]
    elif target.most_draws < largest:
        raise UsageError(
            "--most-draws: {most_draws} is less than one batch of {largest} draws",
            most_draws=target.most_draws,
            largest=largest,
        )
    return command_request(question, given, map(no_effect, idle))


def run(request: CommandRequest[SweepQuestion], output: Output) -> int:
    """Measure and print every point, or after Ctrl-C those that are done; return the exit code."""
    from ....core.tables.lab import sweep_table
    from ....core.work.sweeps import Fold, parts
    from ...views.results.figure import sweep_figure

    output.check()
    question = replace(request.question, form=output.format, ascii_only=output.ascii_only)
    result, command = question.swept(()), question.line()
    plan = question.plan(("logits",) if output.format == "table" else ())  # only a table has histograms
    if request.work.dry_run:
        raise DryRun(parts(plan), output, least=plan.target is not None)

    def points() -> Generator[Predicted, None, None]:
        fold, what = Fold(plan), message("sweeping {number} points", number=result.asked)
        with closing(results_of(parts(plan), request.work, what, output)) as results:
            for each in results:
                yield from fold.add([each])

    def answer(points: Sequence[Predicted]) -> SweepResult:
        return replace(result, points=points)

    return ResultStream(points(), result.asked, "points").emit(
        output,
        lambda points: _table(answer(points), command, output),
        lambda points: sweep_table(result, command, points),
        lambda points, dialect: question.code(answer(points), dialect),
        lambda points: sweep_figure(answer(points), command, output.glyphs),
    )


def _table(result: SweepResult, command: str, output: Output) -> str:
    from ....core.tables.lab import fixed_words, remarks
    from ....core.tables.table import CommandLine
    from ....core.theory.predict import deviations
    from ...views.results.sweep import sweep_lines, sweep_sentences
    from ..printing import page

    far = [deviations(point.measurement, prediction) for point, prediction in result.points]
    lines = sweep_lines(result, far, output.width, output.glyphs)
    said = (*sweep_sentences(result, far), *remarks(result))
    return page(output, fixed_words(result, _ALWAYS), "", lines, "", *said, CommandLine(command))


COMMAND = CliCommand(
    usage="""attn-tui sweep [--d-k GRID] [--n-keys GRID] [--vary NAME=VALUES]
                      [parameters] [--statistics NAMES]
                      [--stderr X [--of STATISTIC] [--most-draws N]]
                      [--format FORMAT] [-o FILE]""",
    description="""\
Print the statistics of attention over many d_k, one line per d_k, unscaled and
under a scale rule, beside the exact values. The draws are nested: the queries
and keys at one d_k are the first components of those at a larger one. A whole
curve therefore costs little more than its largest point, and is smooth.

--n-keys takes a grid too: over many numbers of keys at one d_k, or over both.

A table shows standard errors if they fit; the other formats always do. The last
line is the command that prints the same output again. Ctrl-C ends a sweep early
and keeps its points: JSON then says "complete": false.""",
    examples="""\
examples:
  attn-tui sweep --d-k 1:512:log20 --statistics entropy -o figure.svg
  attn-tui sweep                                    1 to 4096, on a log axis
  attn-tui sweep --d-k 16,64,256 --statistics entropy,max_weight
  attn-tui sweep --d-k 1:512 --format csv -o curve.csv  one line per value
  attn-tui sweep --d-k 16,64 --vary n-keys=64,512,4096    a longer context
  attn-tui sweep --n-keys 16:8192:log12 --d-k 64        over the context
  attn-tui sweep --n-keys 64,1024 --d-k 16,64,256       over both
  attn-tui sweep --vary scale=sqrt_d_k,d_k,log_d_k --d-k 2:1024:log10
  attn-tui sweep --d-k 64 --stderr 0.0005 --of entropy_fraction
  attn-tui sweep --format json | jq '.points[].columns[0].measured.entropy'
""",
    options=(SweepQuestion, Work),
    add=_add_parameters,
    request=_request,
    run=run,
    formats=(*LISTED, *CODE, "svg"),
)
