"""attn-tui watch: the attention of a training run, layer × head × time, while it goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ....core.errors import InputError
from ....core.message import message
from ....core.questions.question import flag
from ....core.questions.watch import WatchRun
from .. import output as printing
from ..output import CODE, LISTED, Output, say
from ..parser import Arguments, CliCommand, arguments
from ..working import SERIAL, results_of

if TYPE_CHECKING:
    from ....core.watching.snapshot import RunSnapshot

_FOUND = 1  # the exit code if a head is over the limit, or was at an earlier step
_NO_LOGITS = 2  # the exit code if no head has a largest |logit|
_SHOWN = 20  # heads in a table


@dataclass(frozen=True)
class WatchArguments(Arguments):
    """The run to watch, and whether the app opens."""

    question: WatchRun
    once: bool = flag("watching", "--once", "print the newest step and exit: 0, or 1 if a head is or was over")
    lang: str | None = None  # of the app


def run(request: WatchArguments, output: Output) -> int:
    """Open the app's Watch pane; with --once or without a terminal, print the newest step; return the exit code."""
    question = request.question
    once = request.once or _is_piped(question.run) or question.at is not None or question.baseline is not None
    if not once and output.path is None and output.format == "table" and printing.has_screen():
        from ..open_app import OpenApp, open_app

        return open_app(OpenApp(run=question.run, max_logit=question.limit, lang=request.lang), output.ascii_only)
    shown = _newest(question, output)
    output.answer(question, shown, lambda: _table(question, shown, output))
    if not shown.ranked:
        say(message("note: no step has `max_logit`, so no head is judged"), output.messages)
    return _FOUND if shown.passed else 0 if shown.ranked else _NO_LOGITS


def _newest(question: WatchRun, output: Output) -> RunSnapshot:
    """Read the whole run and return its newest step, or the one asked for; raise InputError if there is none."""
    with _file_of(question.run) as file:
        *notes, last = results_of(replace(question, run=file).parts(), SERIAL, message("reading"), output)
        for note in notes:
            say(message("note: {note}", note=note), output.messages)
        if isinstance(last, InputError):
            raise last
        return last


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


def _table(question: WatchRun, shown: RunSnapshot, output: Output) -> str:
    """Return the step, a sentence, and the worst heads."""
    from ...views.results.watching import ranked_lines, summary
    from ..printing import page

    glyphs, width = output.glyphs, output.text_width
    words = [
        str(question.run),
        message("step {step}", step=shown.step)
        if shown.baseline is None
        else message("step {step} since {baseline}", step=shown.step, baseline=shown.baseline),
        message("{number} heads", number=sum(shown.heads)),
        shown.says_scale,
    ]
    passed = max((place for place, head in enumerate(shown.ranked, 1) if head.first_over is not None), default=0)
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
    options=(WatchRun, WatchArguments),
    request=lambda given: arguments(
        WatchArguments, given, question=arguments(WatchRun, given), lang=given.get("lang")
    ),
    run=run,
    formats=(*LISTED, *CODE),
)
