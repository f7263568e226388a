"""attn-tui watch: the attention of a training run, layer × head × time, while it goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ....core.errors import InputError
from ....core.message import message
from ....core.questions.parse import UsageError
from ....core.questions.question import flag, option
from ....core.watching.limits import LIMIT
from ....core.watching.snapshot import run_path
from .. import output as printing
from ..output import CODE, LISTED, Output, say
from ..parser import Arguments, CliCommand, arguments
from ..working import ProgressLine

if TYPE_CHECKING:
    from ....core.watching.snapshot import RunSnapshot

_FOUND = 1  # the exit code if a head is over the limit, or was at an earlier step
_NO_LOGITS = 2  # the exit code if no head has a largest |logit|
_SHOWN = 20  # heads in a table


def _limit(text: str) -> float:
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < float("inf"):
        raise UsageError("--max-logit: must be a number above 0, not {text!r}", text=text)
    return limit


def _step(name: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise UsageError("{option}: must be the number of a step, not {text!r}", option=name, text=text)
        return int(text)

    return read


@dataclass(frozen=True)
class WatchArguments(Arguments):
    """The run to watch, and the limit of its logits."""

    run: Path = option(
        "run",
        "",
        "RUN",
        "a folder of captures, a file of attn-tui/watch-1 lines, or - for lines of stdin",
        read=run_path,
    )
    limit: float = option(
        "watching",
        "--max-logit",
        "X",
        message("the largest |logit| that is accepted; default {limit:g}", limit=LIMIT),
        default=LIMIT,
        read=_limit,
    )
    once: bool = flag("watching", "--once", "print the newest step and exit: 0, or 1 if a head is or was over")
    step: int | None = option(
        "watching", "--step", "N", "print step N, or the last one before it", read=_step("--step")
    )
    baseline: int | None = option(
        "watching", "--baseline", "N", "print the change of every head since step N", read=_step("--baseline")
    )
    lang: str | None = None  # of the app


def run(request: WatchArguments, output: Output) -> int:
    """Open the app's Watch pane; with --once or without a terminal, print the newest step; return the exit code."""
    once = request.once or _is_piped(request.run) or request.step is not None or request.baseline is not None
    if not once and output.path is None and output.format == "table" and printing.has_screen():
        from ..open_app import OpenApp, open_app

        return open_app(OpenApp(run=request.run, max_logit=request.limit, lang=request.lang), output.ascii_only)
    from ....core.questions.watch import WatchRun

    question = WatchRun(request.run, request.limit, request.step, request.baseline)
    shown = newest(request, output)
    output.emit(
        lambda: _table(request, shown, output),
        lambda: question.table((shown, (0, 0))),
        lambda dialect: question.code((shown, _worst(request, shown)), dialect),
    )
    if not shown.ranked:
        say(message("note: no step has `max_logit`, so no head is judged"), output.messages)
    return _FOUND if shown.passed else 0 if shown.ranked else _NO_LOGITS


def _worst(request: WatchArguments, shown: RunSnapshot) -> tuple[int, int]:
    """Return the layer and the number of the worst head; raise InputError if there is none."""
    if not shown.ranked:
        raise InputError("{run}: no head has a largest |logit|", run=request.run)
    return shown.ranked[0].layer, shown.ranked[0].head


def newest(request: WatchArguments, output: Output) -> RunSnapshot:
    """Read the whole run and return its newest step, or the one asked for; raise InputError if there is none."""
    from ....core.watching.poll import read_run

    with ProgressLine(message("reading"), output.messages) as progress:

        def heard(fraction: float, notes: Sequence[str]) -> None:
            progress.show(fraction)
            if notes:
                progress.hide()
            for note in notes:
                say(message("note: {note}", note=note), output.messages)

        with _file_of(request.run) as file:
            return read_run(file, request.limit, request.step, request.baseline, heard)


def _is_piped(run: Path) -> bool:
    return str(run) == "-" or run.is_fifo()


@contextmanager
def _file_of(run: Path) -> Generator[Path, None, None]:
    """Yield a folder or file to read a run from: of stdin (-) and of a pipe, a file of all that comes."""
    if not _is_piped(run):
        yield run
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / ("stdin" if str(run) == "-" else run.name)
        with (
            file.open("wb") as target,
            nullcontext(sys.stdin.buffer) if str(run) == "-" else run.open("rb") as source,
        ):
            copyfileobj(source, target)
        try:
            yield file
        except InputError as error:
            raise InputError(str(error).replace(f"{folder}{os.sep}", "")) from None


def _table(request: WatchArguments, shown: RunSnapshot, output: Output) -> str:
    """Return the step, a sentence, and the worst heads."""
    from ...views.results.watching import ranked_lines, summary
    from ..printing import page

    glyphs, width = output.glyphs, output.text_width
    words = [
        str(request.run),
        message("step {step}", step=shown.step)
        if shown.baseline is None
        else message("step {step} since {baseline}", step=shown.step, baseline=shown.baseline),
        message("{number} heads", number=sum(shown.heads)),
        shown.says_scale,
    ]
    passed = max((place for place, each in enumerate(shown.ranked, 1) if each.first_over is not None), default=0)
    lines = ranked_lines(shown, width, glyphs, count=max(_SHOWN, passed))
    left = len(shown.ranked) - len(lines) + 1
    if left > 0:
        more = message("{number} more heads are below these.", number=left)
        lines.append(((glyphs.say(more), "dim"),))
    return page(output, words, summary(shown), "", lines)


COMMAND = CliCommand(
    usage="""attn-tui watch RUN [--max-logit X] [--once] [--step N] [--baseline N]
                      [--format FORMAT] [-o FILE]""",
    description="""\
Watch the attention of a training run as it trains: the largest logit of
every head, how fast it grows, when it passes the limit at that rate, and, of a
head that was over the limit, its first step there and its largest logit. RUN is
a folder of captures, one a step, as `attn-tui record --every N` writes it, or
a file of attn-tui/watch-1 lines, which docs/watching.md explains. It may not
exist yet. With --once, or without a terminal, print the newest step and exit:
with status 0; with 1 if a head is over the limit, or was at an earlier step;
with 2 if nothing can be read, or no step has a largest logit.""",
    examples="""\
examples:
  attn-tui watch run/                                 as it trains
  attn-tui watch run/ --once || notify-send 'a head passed 100'
  attn-tui watch heads.jsonl --once --max-logit 50 --format json
  zcat heads.jsonl.gz | attn-tui watch - --max-logit 50
  attn-tui watch run/ --step 1200 --baseline 600      what changed between them
""",
    options=(WatchArguments,),
    request=lambda given: arguments(WatchArguments, given, lang=given.get("lang")),
    run=run,
    formats=(*LISTED, *CODE),
)
