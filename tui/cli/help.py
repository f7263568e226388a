"""The texts of `--help` apart from the options, in lines of at most 80 characters."""

from __future__ import annotations

from ...core.message import joined, message
from ...core.parameters import FIELD
from ..settings.declared import KEYS_VARIABLE, SETTINGS, variable_of
from ..views.glyphs import Glyphs
from .commands.catalogue import COMMANDS
from .parser import Parser

USAGE = """attn-tui [FILE] [parameters]
       attn-tui COMMAND [...]"""
DESCRIPTION = """\
See, predict and debug the scale in scaled dot-product attention, from a
terminal.

Why divide by √d_k? The Lab draws random queries and keys and shows their
logits, attention weights and softmax gradients, unscaled beside scaled; every
key recomputes. With FILE, the app opens the queries and keys of a real model.
If stdout is not a terminal, the report (or the inspection of FILE) is printed
instead."""
EPILOG = """\
keys in the app:
  left right   d_k - 1, d_k + 1    up down     the next power of two
  0-9          type d_k            pgup pgdn   the next width of a real model
  s S          scale rule          [ ]         half, twice the keys
  c            component law       x           mask
  r            redraw              i           exact values instead of ±
  v            another view        Tab         fields, table
  d            mechanism; m in Rules compares mechanisms over d_k
  e            export to a file    y           copy the command
  > <          next, previous pane ? q         help, quit

examples:
  attn-tui                                   the Lab, as you left it
  attn-tui --d-k 512 --scale d_k             the Lab with these parameters
  attn-tui capture.safetensors               the heads in a file
  attn-tui report --d-k 256 --format json    numbers for a script
"""


OUTPUT = """
Results go to stdout, messages and progress to stderr. Exit status: 0, 2 for a
usage error or unreadable input, or 130 after Ctrl-C.
"""


def parser_of(name: str, glyphs: Glyphs) -> Parser:
    """Return the parser of a command."""
    command = COMMANDS[name].load()
    epilog = glyphs.say(command.examples) + glyphs.say(OUTPUT)
    parser = Parser(f"attn-tui {name}", command.usage, glyphs.say(command.description), epilog, glyphs)
    command.add_options(parser)
    return parser


def commands_help(glyphs: Glyphs) -> str:
    """Return the list of commands, one line each."""
    wide = max(map(len, COMMANDS)) + 2
    lines = joined((f"  {row.name:<{wide}}{glyphs.say(row.summary)}" for row in COMMANDS.values()), "\n")
    return message("commands:\n{lines}\n  attn-tui COMMAND --help shows its options.", lines=lines)


def settings_help(glyphs: Glyphs) -> str:
    """Return the section on the settings: what the app saves, where, and what overrides what."""
    from ..settings.store import config_file

    rows = [(setting.name, setting.variable, setting.help) for setting in SETTINGS]
    rows.append(("[parameters]", f"{variable_of(FIELD['d_k'])} ...", message("parameters, named like their options")))
    rows.append(("[keys]", KEYS_VARIABLE, message("keys of actions: quit=ctrl+x lab.redraw=n")))
    table = joined((f"  {name:<14}{variable:<20}{glyphs.say(help)}" for name, variable, help in rows), "\n")
    return message(
        "settings of the app, from the environment or the file\n  {config_file}\n{table}\n  The app "
        "saves its parameters in the file when it ends and starts with them the\n  next time; R in "
        "the Lab resets them. The environment overrides the file, and\n  the command line overrides "
        "both. Commands that print ignore all settings, so a\n  script prints the same everywhere.\n",
        config_file=config_file(),
        table=table,
    )
