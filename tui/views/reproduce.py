"""The command lines that print what is on screen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...core.attention.cost import SHAPE_FIELDS, Layer
from ...core.attention.presets import Preset
from ...core.attention.worked_example import EXAMPLE_FIELD, Example, relevant, scores_text
from ...core.captures.settings import AS_IN_FILE, HEAD_FIELDS, HeadSetting
from ...core.lab.results import Order, Target
from ...core.model_choice import usual_of
from ...core.parameters import FIELD, FIELDS, NO_MODEL, UNSCALED, Parameters
from ...core.training.settings import RACE_FIELDS, RATES, Race, option_of


@dataclass(frozen=True)
class SweepQuestion:
    """A sweep as written on the command line."""

    parameters: Parameters  # with the default of what is swept
    grid: str  # the values of d_k
    values: tuple[str, str] | None = None  # the second axis: a parameter, and its values
    statistics: tuple[str, ...] = ()  # if empty, the default of each format
    target: Target | None = None
    n_keys: str = ""  # the numbers of keys, if they are swept too


def command_line(parameters: Parameters) -> str:
    """Return `attn-tui report --d-k 512`: the command with the parameters that differ from the defaults."""
    return in_shell(["attn-tui", "report", *parameter_options(parameters)])


def sweep_line(question: SweepQuestion, output_format: str = "table", ascii_only: bool = False) -> str:
    """Return `attn-tui sweep --d-k 1:512 --n-keys 10 …`: the command that prints this sweep."""
    words = ["--d-k", question.grid, *(["--n-keys", question.n_keys] if question.n_keys else [])]
    if question.values:
        words += ["--vary", f"{FIELD[question.values[0]].option[2:]}={question.values[1]}"]
    words += parameter_options(question.parameters, question.values[0] if question.values else "")
    if question.statistics:
        words += ["--statistics", ",".join(question.statistics)]
    if question.target is not None:
        words += ["--stderr", repr(question.target.stderr), "--of", question.target.statistic]
        words += ["--most-draws", str(question.target.most_draws)]
    return _printing("sweep", words, output_format, ascii_only)


def rules_line(
    parameters: Parameters,
    order: Order,
    mechanisms: bool,
    output_format: str = "table",
    ascii_only: bool = False,
    weightings: bool = False,
) -> str:
    """Return `attn-tui rules --sort max_weight …`: the command that prints these rules, mechanisms or weightings."""
    words = ["--mechanisms"] if mechanisms else ["--weightings"] if weightings else []
    words += parameter_options(replace(parameters, against=UNSCALED))
    if order.column != "rule":
        words += ["--sort", order.column]
    words += ["--reverse"] if order.reverse else []
    return _printing("rules", words, output_format, ascii_only)


def _printing(command: str, words: Sequence[str], output_format: str, ascii_only: bool) -> str:
    """Return the command with these words and the options for its output format."""
    form = [] if output_format == "table" else ["--format", output_format]
    return in_shell(["attn-tui", command, *words, *form, *(["--ascii"] if ascii_only else [])])


def setting_options(setting: HeadSetting) -> list[str]:
    """Return the options of what a captured head is measured under, without what is as in the file."""
    words: list[str] = []
    for field in HEAD_FIELDS:
        value = getattr(setting, field.name)
        if field.name == "scale" and value == "custom":
            words += ["--scale", FIELD["multiplier"].format(setting.multiplier)]
        elif field.name != "multiplier" and value != getattr(AS_IN_FILE, field.name):
            words += [field.option, field.format(value)]
    return words


def softmax_line(example: Example, parameters: Parameters) -> str:
    """Return `attn-tui softmax --scores=1,2,3 …`: the command that works out this example."""
    words, usual = ["attn-tui", "softmax"], Example()
    if example.scores != usual.scores:
        words.append(f"--scores={scores_text(example.scores)}")
    for name in ("temperature", "shift"):
        value, field = getattr(example, name), EXAMPLE_FIELD[name]
        if value != getattr(usual, name):
            words += [field.option, field.format(value)]
    return in_shell([*words, *parameter_options(relevant(parameters))])


def cost_line(layer: Layer, preset: Preset | None) -> str:
    """Return `attn-tui cost --d-model 512 …`: the command that counts what this layer costs."""
    words, usual = ["attn-tui", "cost"], Layer()
    if preset is not None:
        usual = preset.layer
        words += ["--preset", preset.name]
    filled = {"kv_heads": layer.key_heads, "d_k": layer.width, "d_v": layer.value_width}
    for field in SHAPE_FIELDS:
        value = getattr(layer, field.name)
        if value != getattr(usual, field.name):
            # No option unsets a value of the preset.
            words += [field.option, field.format(filled[field.name] if value is None else value)]
    return in_shell(words)


def train_line(race: Race, ascii_only: bool = False, d_ks: Sequence[int] = ()) -> str:
    """Return `attn-tui train --d-k 64 --rules none,sqrt_d_k …`: the command that runs this race, or at `d_ks`."""
    widths = ",".join(map(str, d_ks or [race.d_k]))
    words = ["attn-tui", "train", "--d-k", widths, "--rules", ",".join(race.rules)]
    usual = Race(optimiser=race.optimiser, rate=RATES[race.optimiser])
    for field in RACE_FIELDS[1:]:
        value = getattr(race, field.name)
        if value != getattr(usual, field.name) or (field.name == "optimiser" and value != Race.optimiser):
            words += [option_of(field), field.format(value)]
    return in_shell(words, ascii_only)


def parameter_options(parameters: Parameters, without: str = "") -> list[str]:
    """Return the model, and the options that differ from what it sets or from the defaults, with their values.

    A parameter may be left out.
    """
    usual = replace(usual_of(parameters), model=NO_MODEL)
    # --multiplier alone implies --scale custom, so with it the rule is always named.
    named = {"scale"} if parameters.multiplier != usual.multiplier else set[str]()
    words: list[str] = []
    for field in FIELDS:
        value = getattr(parameters, field.name)
        if field.name != without and (value != getattr(usual, field.name) or field.name in named):
            words += [field.option, field.format(value)]
    return words


def in_shell(words: Iterable[str], ascii_only: bool = False) -> str:
    """Return the words quoted for a shell, on one line of printable characters."""
    return " ".join(_quoted(word, ascii_only) for word in words)


def _quoted(word: str, ascii_only: bool) -> str:
    """Quote a word if necessary; unprintable characters, as in some file names, become $'\\x1b'."""
    if word.isprintable() and (word.isascii() or not ascii_only):
        return shlex.quote(word)
    return "$'" + "".join(_spelled(character, ascii_only) for character in word) + "'"


def _spelled(character: str, ascii_only: bool) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and (character.isascii() or not ascii_only):
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))
