"""attn-tui help: what commands share, by topic, or the help of a command."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.questions.question import option
from ..help import TOPICS, topic_help
from ..output import Output
from ..parser import Arguments, CliCommand, arguments
from .catalogue import COMMANDS


@dataclass(frozen=True)
class HelpArguments(Arguments):
    """A topic, the name of a command, or None for all commands."""

    topic: str | None = option(
        "topic", "", "TOPIC", COMMANDS["help"].summary, nargs="?", choices=(*TOPICS, *COMMANDS)
    )


def run(request: HelpArguments, output: Output) -> int:
    """Print the help; return the exit code."""
    from ..open_app import app_parser

    topic, glyphs = request.topic, output.glyphs
    text = app_parser(glyphs).format_help() if topic is None else topic_help(topic, glyphs)
    output.emit(lambda: text)
    return 0


COMMAND = CliCommand(
    usage="attn-tui help [TOPIC]",
    description="""\
Explain what several commands share: parameters of random attention, scale
rules, models, keys of the app, long work, and settings; or a command.""",
    examples="""\
examples:
  attn-tui help rules       scale rules and their multipliers
  attn-tui help sweep       the same as attn-tui sweep --help
""",
    options=(HelpArguments,),
    request=lambda given: arguments(HelpArguments, given),
    run=run,
    title="topic",
)
