"""attn-tui help: what commands share, by topic, or the help of a command."""

from __future__ import annotations

from dataclasses import dataclass

from ..output import Output
from ..parser import Command, Given, Parser


@dataclass(frozen=True)
class HelpRequest:
    """A topic, the name of a command, or None for all commands."""

    topic: str | None
    remarks: tuple[str, ...] = ()


def _add_options(parser: Parser) -> None:
    from ..help import TOPICS
    from .catalogue import COMMANDS

    words = parser.glyphs.say(COMMANDS["help"].summary)
    parser.add("topic", "topic", metavar="TOPIC", nargs="?", choices=(*TOPICS, *COMMANDS), help=words)
    parser.add_common("topic")


def _request(given: Given) -> HelpRequest:
    return HelpRequest(given.get("topic"))


def run(request: HelpRequest, output: Output) -> int:
    """Print the help; return the exit code."""
    from ..help import topic_help
    from ..open_app import app_parser

    topic, glyphs = request.topic, output.glyphs
    text = app_parser(glyphs).format_help() if topic is None else topic_help(topic, glyphs)
    output.emit(lambda: text)
    return 0


COMMAND = Command(
    usage="attn-tui help [TOPIC]",
    description="""\
Explain what several commands share: parameters of random attention, scale
rules, models, keys of the app, long work, and settings; or a command.""",
    examples="""\
examples:
  attn-tui help rules       scale rules and their multipliers
  attn-tui help sweep       the same as attn-tui sweep --help
""",
    add_options=_add_options,
    request=_request,
    run=run,
)
