"""COMMANDS: one row per command, in the order of the help. Modules are loaded when a command is run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..parser import CliCommand


class CommandRow(NamedTuple):
    """One command; the module of the same name defines COMMAND."""

    name: str
    summary: str
    tuned: bool = True  # whether the process computes, and may set variables that libraries read

    def load(self) -> CliCommand[Any]:
        """Load the command's module and return its COMMAND."""
        return import_module(f".{self.name}", __package__).COMMAND


COMMANDS = {
    row.name: row
    for row in (
        CommandRow("report", "print what the Lab shows: a table, JSON, CSV or Markdown"),
        CommandRow("sweep", "print statistics over many d_k, and over a second parameter"),
        CommandRow("softmax", "work out the softmax of a few scores, step by step"),
        CommandRow("rules", "compare all scale rules, or mechanisms over d_k"),
        CommandRow("inspect", "print what the heads of a captured model do"),
        CommandRow("examples", "open a capture that is right, or wrong in a known way"),
        CommandRow("diagnose", "find out which scale the heads of a captured model really used"),
        CommandRow("compare", "name the first stage at which two captures differ"),
        CommandRow("check", "fail if captured heads are beyond limits or wrongly scaled"),
        CommandRow("record", "record the attention of any PyTorch program", tuned=False),
        CommandRow("watch", "watch the attention of a training run as it trains"),
        CommandRow("train", "train a small attention under several scale rules, side by side"),
        CommandRow("learn", "take the tour of why attention divides by √d_k, printed"),
        CommandRow("claims", "test claims of study notes about √d_k"),
        CommandRow("cost", "count the parameters, KV cache and FLOPs of a layer"),
        CommandRow("help", "explain parameters, rules, models, keys, work and settings"),
        CommandRow("completion", "print the completion script of a shell"),
    )
}
