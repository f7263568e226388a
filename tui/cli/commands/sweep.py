"""attn-tui sweep: the statistics of the Lab over many d_k and numbers of keys."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ....core.errors import InputError
from ....core.grid import is_grid, parse_grid, parse_values
from ....core.lab.results import Step, Target
from ....core.message import joined, message, reason_of
from ....core.models import MODELS
from ....core.parameters import FIELD, FIELDS, Parameters, Value, parameters_from
from ....core.statistics.catalogue import STATISTIC
from ...compute.question import SweepQuestion, sweep_line
from ...settings.parse import UsageError, is_number, no_effect, parameter_values, value_of
from ..output import CODE, LISTED, Output
from ..parser import Command, Given, Parser
from ..progress import ProgressLine
from ..results import Results
from ..working import USUAL, Estimated, Work, add_work, performed, work_of

if TYPE_CHECKING:
    from ....core.tables.lab import SweepResult
    from ....core.work.sweeps import Predicted, SweepPlan

GRID = "1:4096:log24"  # the default values of d_k, unless the number of keys is swept
_ALWAYS = ("n_keys", "n_queries", "batch", "scale", "components", "seed")  # in every title


@dataclass(frozen=True)
class SweepRequest:
    """A sweep, and remarks on its options."""

    question: SweepQuestion
    remarks: tuple[str, ...] = ()
    work: Work = USUAL

    @property
    def d_ks(self) -> tuple[int, ...]:
        """The values of d_k, ascending."""
        return parse_grid(self.question.grid)

    @property
    def n_keys(self) -> tuple[int, ...]:
        """The numbers of keys, ascending; none if there is only that of the parameters."""
        return parse_grid(self.question.n_keys, FIELD["n_keys"]) if self.question.n_keys else ()

    @property
    def vary(self) -> tuple[str, tuple[Value, ...]] | None:
        """The parameter of the second axis and its values, if there is one."""
        values = self.question.values
        return values and (values[0], parse_values(values[1], FIELD[values[0]]))

    @property
    def each(self) -> list[Parameters]:
        """The parameters at each value of the second axis, with any number of keys."""
        p = self.question.parameters
        return [p.with_value(self.vary[0], value) for value in self.vary[1]] if self.vary else [p]


def _add_options(parser: Parser) -> None:
    title = "grid and precision"
    parser.add(
        title,
        "--d-k",
        metavar="GRID",
        help=message(
            "the values of d_k: numbers, a:b (a to b), a:b:STEP (every STEP-th), a:b:logN (N values, "
            "evenly spaced on a log axis), or several of these separated by commas; default {grid}, or "
            "{width} if the number of keys is swept",
            grid=GRID,
            width=Parameters.d_k,
        ),
    )
    parser.add(
        title,
        "--vary",
        metavar="NAME=VALUES",
        action="append",
        help="a second axis: another parameter and its values, such as n-keys=64,128, scale=sqrt_d_k,d_k or "
        "components=normal,uniform",
    )
    parser.add(
        title,
        "--statistics",
        metavar="NAMES",
        suggest=STATISTIC,
        help="the statistics to print, separated by commas, with their names in JSON, or all; default: all except "
        "those of gradients and of the number format, which take a separate run per point; a table shows those that "
        "fit",
    )
    parser.add(
        title,
        "--stderr",
        metavar="X",
        help="draw more batches at each point until the standard error is at most X in both columns",
    )
    parser.add(
        title,
        "--of",
        metavar="STATISTIC",
        suggest=STATISTIC,
        help="the statistic whose standard error it is; default entropy_fraction",
    )
    parser.add(
        title, "--most-draws", metavar="N", help="the most draws at a point, even if X is not reached; default 4096"
    )
    add_work(parser)
    parser.add_output((*LISTED, *CODE, "svg"))
    swept = joined([FIELD["n_keys"].help, message("A grid, written as that of --d-k, sweeps it.")])
    parser.add_fields([replace(f, help=swept) if f.name == "n_keys" else f for f in FIELDS if f.name != "d_k"])


def _request(given: Given) -> SweepRequest:
    values = _second_axis(given)
    n_keys = given.pop("n_keys").strip() if is_grid(given.get("n_keys", "")) else ""
    width = MODELS[given["model"]].width if given.get("model") in MODELS else Parameters.d_k
    grid = given.pop("d_k", str(width) if n_keys else GRID).strip()
    if n_keys and values and values[0] == "n_keys":
        raise UsageError(
            "--vary n-keys: --n-keys {n_keys} sweeps the number of keys already; leave out one of them", n_keys=n_keys
        )
    if values and values[0] == "multiplier":
        given = {"scale": "custom"} | given
    parameters = parameters_from(parameter_values(given))
    request = SweepRequest(SweepQuestion(parameters, grid, values, _statistics(given), _target(given), n_keys))
    with _called("--d-k", "d_k"):
        _ = request.d_ks
    with _called("--n-keys", FIELD["n_keys"].label):
        _ = request.n_keys
    each, target = request.each, request.question.target
    asked = [FIELD[name] for name in FIELD if name in given and (values is None or name != values[0])]
    idle = [field.option for field in asked if not any(map(field.applies, each))]
    if values and values[0] in given:
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
    return replace(request, remarks=tuple(map(no_effect, idle)), work=work_of(given))


def _second_axis(given: dict[str, Any]) -> tuple[str, str] | None:
    """Return `n-keys=64,128` as a parameter's name and the text of its values, which are checked."""
    texts = given.get("vary", [])
    if not texts:
        return None
    if len(texts) > 1:
        raise UsageError("--vary: given more than once; a sweep has one second axis")
    option, equals, values = texts[0].partition("=")
    name = option.strip().removeprefix("--").replace("-", "_")
    names = [field.option[2:] for field in FIELDS if field.name != "d_k"]
    if name not in FIELD or name == "d_k" or not equals:
        raise UsageError(
            "--vary: must be NAME=VALUES, with NAME one of {names}, not {text!r}",
            names=", ".join(names),
            text=texts[0],
        )
    field = FIELD[name]
    if name == "scale" and any(map(is_number, values.split(","))):
        raise UsageError("--vary scale: values must be names of rules; for numbers use --vary multiplier=0.05,0.1")
    with _called(f"--vary {field.option[2:]}", field.label):
        parse_values(values, field)
    return name, values.strip()


def _statistics(given: dict[str, Any]) -> tuple[str, ...]:
    """Return the requested statistics, in order and without repetitions."""
    text = given.get("statistics")
    if text is None:
        return ()
    names = [word.strip().replace("-", "_") for word in text.split(",")]
    if names == ["all"]:
        return tuple(STATISTIC)
    for name in names:
        if name not in STATISTIC:
            raise UsageError(
                "--statistics: must be all, or any of {names}, not {text!r}", names=", ".join(STATISTIC), text=name
            )
    return tuple(dict.fromkeys(names))


def _target(given: dict[str, Any]) -> Target | None:
    if "stderr" not in given:
        return None
    text = given["stderr"]
    stderr = float(text) if is_number(text) else math.nan
    if not 0 < stderr < math.inf:
        raise UsageError("--stderr: must be a number above 0, not {text!r}", text=text)
    target = Target(stderr)
    if "of" in given:
        with _called("--of", "statistic"):
            target = replace(target, statistic=given["of"].strip().replace("-", "_"))
    if "most_draws" in given:
        target = replace(target, most_draws=value_of(FIELD["batch"], given["most_draws"], "--most-draws"))
    return target


@contextmanager
def _called(option: str, label: str) -> Generator[None, None, None]:
    """Raise an InputError about `label` as a UsageError about `option`."""
    try:
        yield
    except InputError as error:
        raise UsageError("{option}: {reason}", option=option, reason=reason_of(str(error), label)) from None


def run(request: SweepRequest, output: Output) -> int:
    """Measure and print every point, or after Ctrl-C those that are done; return the exit code."""
    from ....core.program.sweep import sweep_code
    from ....core.tables.lab import SweepResult, sweep_table
    from ....core.work import sweeps
    from ...views.results.figure import sweep_figure

    output.check()
    question = request.question
    command = sweep_line(question, output.format, output.ascii_only)
    result = SweepResult(
        question.parameters,
        request.d_ks,
        (),
        command,
        request.vary,
        question.target,
        question.statistics,
        request.n_keys,
    )
    plan = _plan(request, result, output)
    if request.work.dry_run:
        raise Estimated(sweeps.parts(plan), output, least=plan.target is not None)

    def points() -> Generator[Predicted, None, None]:
        progress = ProgressLine(message("sweeping {number} points", number=result.asked), output.messages)
        with performed(lambda: sweeps.parts(plan), request.work, output) as steps, progress:
            yield from _shown(sweeps.fold(plan, steps, sweeps.plan_seconds(plan)), progress, output)

    return Results(points(), result.asked, "points").emit(
        output,
        lambda points: _table(replace(result, points=points), output),
        lambda points: sweep_table(result, points),
        lambda points, dialect: sweep_code(replace(result, points=points), dialect),
        lambda points: sweep_figure(replace(result, points=points), output.glyphs),
    )


def _plan(request: SweepRequest, result: SweepResult, output: Output) -> SweepPlan:
    """Return the plan of a sweep that measures what is printed: only a table has histograms."""
    from ....core.work.sweeps import sweep_plan

    question = request.question
    return sweep_plan(
        question.parameters,
        request.d_ks,
        vary=request.vary,
        n_keys=request.n_keys,
        target=question.target,
        full=any(STATISTIC[name].optional for name in result.shown),
        histograms=("logits",) if output.format == "table" else (),
    )


def _shown(
    steps: Iterator[Step[tuple[Predicted, ...]]], progress: ProgressLine, output: Output
) -> Generator[Predicted, None, None]:
    """Yield the points and show the progress in between."""
    for step in steps:
        if step.found and output.on_screen:
            progress.hide()
        yield from step.found
        progress.show(step.fraction)


def _table(found: SweepResult, output: Output) -> str:
    from ....core.tables.lab import fixed_words, remarks
    from ....core.tables.table import Command
    from ....core.theory.predict import deviations
    from ...panes.sweep.print_table import sweep_lines, sweep_sentences
    from ..printing import page

    far = [deviations(point.measurement, prediction) for point, prediction in found.points]
    lines = sweep_lines(found, far, output.width, output.glyphs)
    said = (*sweep_sentences(found, far), *remarks(found))
    return page(output, fixed_words(found, _ALWAYS), "", lines, "", *said, Command(found.command))


COMMAND = Command(
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
    add_options=_add_options,
    request=_request,
    run=run,
)
