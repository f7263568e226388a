"""attn-tui examples: captures that are right, or wrong in a known way, to try everything on."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.captures.capture import EXAMPLES, example_path
from ....core.message import joined, message
from ....core.message import name as as_it_is
from ....core.questions.captures.diagnose import DiagnoseCaptures
from ....core.questions.question import option
from ....core.watching.snapshot import sample_run
from .. import output as printing
from ..output import Output
from ..parser import Arguments, CliCommand, arguments
from ..working import CommandRequest

_RUN = "exploding"
_ALL = EXAMPLES | {_RUN: message("a training run whose logits explode, for `attn-tui watch`")}


@dataclass(frozen=True)
class ExampleArguments(Arguments):
    """The example to open; None lists them."""

    name: str | None = option("example", "", "NAME", "the example to open", nargs="?", choices=(*_ALL,))
    lang: str | None = None  # of the app


def run(request: ExampleArguments, output: Output) -> int:
    """List the examples, or open one in the app; without a terminal, print its verdicts; return the exit code."""
    if request.name is None:
        output.emit(lambda: output.glyphs.say(_listed()))
        return 0
    if request.name == _RUN:
        from ....core.questions.watch import WatchRun
        from . import watch

        return watch.run(watch.WatchArguments(WatchRun(run=sample_run()), lang=request.lang), output)
    file = example_path(request.name)
    if printing.has_screen():
        from ..open_app import OpenApp, capture, open_app

        return open_app(OpenApp(file=capture(file), lang=request.lang), output.ascii_only)
    from . import diagnose

    return diagnose.run(CommandRequest(DiagnoseCaptures(paths=(file,))), output)


def _listed() -> str:
    lines = joined(
        (message("{name:<13}{words}", name=as_it_is(name), words=words) for name, words in _ALL.items()), "\n"
    )
    folder = example_path("right").parent
    return message(
        "{lines}\n\nattn-tui examples NAME opens one. Other commands read it as example:NAME, such as\n"
        "attn-tui check example:scale-twice. Those of the tiny model are in\n{folder}\n",
        lines=lines,
        folder=folder,
    )


COMMAND = CliCommand(
    usage="attn-tui examples [NAME]",
    description="""\
Open a capture in the app, or without a terminal print the verdicts on it: of a
real model, or of a tiny one that is right or has one fault. Without NAME, list
them.""",
    examples="""\
examples:
  attn-tui examples                    what there is
  attn-tui examples scale-twice        in the app
  attn-tui examples d-model | cat      its verdicts
""",
    options=(ExampleArguments,),
    request=lambda given: arguments(ExampleArguments, given, lang=given.get("lang")),
    run=run,
    title="example",
)
