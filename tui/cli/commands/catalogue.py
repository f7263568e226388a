"""COMMANDS: one row per command, by groups in the order of the help. Modules are loaded when a command is run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..parser import CliCommand


class CommandRow(NamedTuple):
    """One command; the module of the same name defines COMMAND."""

    group: str  # in the help of the app
    name: str
    summary: str
    tuned: bool = True  # whether the process computes, and may set variables that libraries read

    def load(self) -> CliCommand[Any]:
        """Load the command's module and return its COMMAND."""
        return import_module(f".{self.name}", __package__).COMMAND


COMMANDS = {
    row.name: row
    for row in (
        CommandRow("random q and k", "report", "print what the Lab shows: a table, JSON, CSV or Markdown"),
        CommandRow("random q and k", "sweep", "print statistics over many d_k, and over a second parameter"),
        CommandRow("random q and k", "softmax", "work out the softmax of a few scores, step by step"),
        CommandRow("random q and k", "rules", "compare all scale rules, or mechanisms over d_k"),
        CommandRow("random q and k", "cost", "count the parameters, KV cache and FLOPs of a layer"),
        CommandRow("random q and k", "train", "train a small attention under several scale rules, side by side"),
        CommandRow("real models", "record", "record the attention of any PyTorch program", tuned=False),
        CommandRow("real models", "inspect", "print what the heads of a captured model do"),
        CommandRow("real models", "diagnose", "find out which scale the heads of a captured model really used"),
        CommandRow("real models", "compare", "name the first stage at which two captures differ"),
        CommandRow("real models", "check", "fail if captured heads are beyond limits or wrongly scaled"),
        CommandRow("real models", "watch", "watch the attention of a training run as it trains"),
        CommandRow("to learn", "learn", "take the tour of why attention divides by √d_k, printed"),
        CommandRow("to learn", "claims", "test claims of study notes about √d_k"),
        CommandRow("help", "help", "explain parameters, rules, models, keys, work and settings"),
        CommandRow("help", "completion", "print the completion script of a shell"),
    )
}
