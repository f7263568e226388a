"""attn-tui completion: scripts that make shells complete commands, options and their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

from ....core.questions.question import option
from ...views.glyphs import UNICODE
from ..output import Output
from ..parser import Arguments, CliCommand, arguments

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class CompletionArguments(Arguments):
    """The shell that the script is for."""

    shell: str = option("shell", "", "SHELL", "bash, zsh or fish", choices=SHELLS)


def run(request: CompletionArguments, output: Output) -> int:
    """Print the script; return the exit code."""
    script = completion_script(request.shell)
    output.emit(lambda: script)
    return 0


def completion_script(shell: str) -> str:
    """Return the script for `shell`, made from the options of the app and of every command."""
    import argparse

    import shtab

    from ...terminal.themes import names
    from ..help import parser_of
    from ..open_app import app_parser
    from .catalogue import COMMANDS

    shared = {"--theme": names(), "--executor": ("serial", "threads", "processes", "dask")}
    whole = app_parser(UNICODE, with_file=False)
    parsers = {name: parser_of(name, UNICODE) for name in COMMANDS}
    for parser in (whole, *parsers.values()):
        for action, values in parser.arguments:
            values = values or shared.get(action.option_strings[-1] if action.option_strings else "", ())
            action.choices = values or None
            action.help = str(action.help).partition(". ")[0]
            if action.metavar == "FILE":
                action.complete = shtab.FILE  # pyright: ignore[reportAttributeAccessIssue]
            elif values and action.metavar in ("NAMES", "RULES"):
                action.choices = None
                action.complete = _several(values)  # pyright: ignore[reportAttributeAccessIssue]
    commands = whole.add_subparsers(parser_class=argparse.ArgumentParser)
    for name, parser in parsers.items():
        commands.add_parser(name, help=COMMANDS[name].summary, parents=[parser], add_help=False)
    script = shtab.complete(whole, shell=shell)
    if shell == "fish":  # the other two shells offer files if nothing else fits
        script += "\ncomplete -c attn-tui -n __fish_use_subcommand -F\n"
    return script


def _several(values: Iterable[str]) -> dict[str, str | dict[str, str]]:
    """Return how shells complete several of these values, separated by commas."""
    words = [*values]
    function = f"_attn_tui_{crc32(' '.join(words).encode()):x}"
    bash = f"""
{function}() {{
  local before=""
  [[ "$1" == *,* ]] && before="${{1%,*}},"
  compgen -P "$before" -W "{" ".join(words)}" -- "${{1##*,}}"
}}
"""
    return {
        "bash": function,
        "zsh": f"_values -s , value {' '.join(words)}",
        "fish": f"(commandline -ct | sed 's/[^,]*\\$//'){{{','.join(words)}}}",
        "preamble": {"bash": bash},
    }


COMMAND = CliCommand(
    usage="attn-tui completion SHELL",
    description="""\
Print a script that makes a shell complete commands, options and their values.
Save it where the shell looks for completions.""",
    examples="""\
examples:
  attn-tui completion bash > ~/.local/share/bash-completion/completions/attn-tui
  attn-tui completion zsh > ~/.zfunc/_attn-tui      with ~/.zfunc in your fpath
  attn-tui completion fish > ~/.config/fish/completions/attn-tui.fish
""",
    options=(CompletionArguments,),
    request=lambda given: arguments(CompletionArguments, given),
    run=run,
    title="shell",
)
