"""The texts of `--help` apart from the options, in lines of at most 80 characters."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Iterator
from itertools import groupby

from ...core.message import joined, message
from ...core.parameters import FIELD, FIELDS
from ..language.cells import to_left
from ..settings.declared import KEYS_VARIABLE, SETTINGS, variable_of
from ..views.glyphs import Glyphs
from .commands.catalogue import COMMANDS, CommandRow
from .parser import Parser
from .working import Work

USAGE = """attn-tui [FILE] [parameters]
       attn-tui COMMAND [...]"""
DESCRIPTION = """\
See, predict and debug the scale in scaled dot-product attention. Without a
command, the app opens: random queries and keys, or those of a model in FILE.
Without a terminal, the report is printed, or FILE inspected (--expect: judged)."""
EPILOG = """\
examples:
  attn-tui                                   the Lab, as you left it
  attn-tui learn                             why divide by √d_k, in twelve steps
  attn-tui sweep --d-k 1:512                 both scales over d_k
  attn-tui record -o heads.safetensors -- python run.py
  attn-tui diagnose heads.safetensors        the scale each head really used

attn-tui COMMAND --help shows the options of a command, and attn-tui help TOPIC
explains {topics}.
"""
_GROUP = 18  # cells of the name of a group
WIDTH = 78  # cells in a line of help
LISTED = ("model", "d_k", "n_keys", "scale", "against", "theme", "lang", "ascii", "help", "version")

OUTPUT = """
Results go to stdout, messages and progress to stderr. Exit status: 0, 2 for a
usage error or unreadable input, or 130 after Ctrl-C.
"""
CHECKED = """
Results go to stdout, messages and progress to stderr. Exit status: 0 without
findings; 1 with findings, and with --strict if a head was not judged; 2 for a
usage error or unreadable input; 130 after Ctrl-C.
"""

TOPICS = {
    "commands": message("the commands, in groups"),
    "parameters": message("the parameters of random attention, for the app, report, sweep and rules"),
    "rules": message("the scale rules and their multipliers"),
    "models": message("the models, and what they set"),
    "keys": message("the keys of the app, and the names that change them"),
    "work": message("where long work is done, and how it is continued"),
    "settings": message("the settings of the app, their file and their variables"),
}
WORK = """\
sweep, inspect, diagnose, compare, check, rules and claims divide long work
into parts.

on a cluster, with the same version on every machine:
  pip install 'attn-tui[cluster]'
  dask scheduler                                          on one machine
  dask worker tcp://HOST:8786 --nworkers -1 --nthreads 1  on the others
  attn-tui sweep --d-k 1:4096 --executor dask:tcp://HOST:8786 --resume parts
"""


def parser_of(name: str, glyphs: Glyphs) -> Parser:
    """Return the parser of a command."""
    command = COMMANDS[name].load()
    epilog = glyphs.say(command.examples) + glyphs.say(CHECKED if name == "check" else OUTPUT)
    parser = Parser(f"attn-tui {name}", command.usage, glyphs.say(command.description), epilog, glyphs)
    command.add_options(parser)
    return parser


def commands_help(glyphs: Glyphs) -> str:
    """Return the groups of commands, one line each."""
    lines = [
        f"  {to_left(glyphs.say(group), _GROUP)}{', '.join(row.name for row in rows)}" for group, rows in groups()
    ]
    return glyphs.say(message("commands:\n{lines}", lines=joined(lines, "\n")))


def each_command_help(glyphs: Glyphs) -> str:
    """Return what each command does, one line each, by group."""
    wide = max(map(len, COMMANDS)) + 2
    lines = [
        f"{glyphs.say(group)}:\n" + "".join(f"  {row.name:<{wide}}{glyphs.say(row.summary)}\n" for row in rows)
        for group, rows in groups()
    ]
    return "\n".join(lines)


def groups() -> Iterator[tuple[str, Iterator[CommandRow]]]:
    """Yield the groups of commands."""
    return groupby(COMMANDS.values(), key=lambda row: row.group)


def settings_help(glyphs: Glyphs) -> str:
    """Return the section on the settings: what the app saves, where, and what overrides what."""
    from ..settings.store import config_file

    rows = [(setting.name, setting.variable, setting.help) for setting in SETTINGS]
    rows.append(("[parameters]", f"{variable_of(FIELD['d_k'])} ...", message("parameters, named like their options")))
    rows.append(("[keys]", KEYS_VARIABLE, message("keys of actions: quit=ctrl+x lab.redraw=n")))
    lines: list[str] = []
    for name, variable, help in rows:
        if len(variable) < 20:
            lines.append(f"  {name:<15}{variable:<20}{glyphs.say(help)}")
        else:
            lines += [f"  {name:<15}{variable}", f"{'':37}{glyphs.say(help)}"]
    table = joined(lines, "\n")
    return message(
        "from the environment or, unless --no-config is given, the file\n  {config_file}\n{table}\n  The app "
        "saves its parameters in the file when it ends and starts with them the\n  next time; R in "
        "the Lab resets them. The environment overrides the file, and\n  the command line overrides "
        "both. Commands that print ignore all settings, so a\n  script prints the same everywhere.\n",
        config_file=config_file(),
        table=table,
    )


def topic_help(topic: str, glyphs: Glyphs) -> str:
    """Return the help on one of TOPICS, or on a command."""
    if topic not in TOPICS:
        return parser_of(topic, glyphs).format_help()
    if topic == "keys":
        from ..app.keys import all_commands, help_keys
        from ..settings.store import config_file
        from ..views.help import key_overview
        from ..views.lines import as_text

        groups = help_keys(all_commands(), {})
        return f"{as_text(key_overview(groups, str(config_file()), WIDTH, glyphs)).plain}\n".lstrip("\n")
    parser = Parser("", SUPPRESS, glyphs.say(TOPICS[topic]), "", glyphs)
    if topic == "commands":
        parser.epilog = each_command_help(glyphs)
    elif topic == "parameters":
        parser.add_fields(FIELDS)
    elif topic == "rules":
        parser.add_rules()
    elif topic == "models":
        parser.add_models()
    elif topic == "work":
        parser.add_options(Work)
        parser.epilog = glyphs.say(WORK)
    else:
        parser.epilog = glyphs.say(settings_help(glyphs))
    return parser.format_help()
