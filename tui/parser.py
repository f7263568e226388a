"""The parsers of the command line: options made from FIELDS, one line for every mistake.

What only one command needs is imported where its options are made: nobody else waits for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ..core.attention.scales import SCALE_RULES
from ..core.parameters import FIELD, FIELDS, Field, Parameters
from .guide import APP, GUIDES, settings_guide
from .usage import FORMATS, GRID, UsageError, is_number
from .views.glyphs import Glyphs

_METAVARS = {"integer": "N", "real": "X", "choice": "NAME"}
_TITLES = {
    "shape": "shape of a draw",
    "attention": "attention",
    "components": "components of queries and keys",
    "draw": "random numbers",
}


def read(command: str, words: Sequence[str], glyphs: Glyphs) -> dict[str, Any]:
    """What these words give, by name; raises UsageError, or SystemExit after --help and --version.

    Values of parameters stay the text that was typed.
    """
    parser = _Parser(command, glyphs)
    found, unknown = parser.parse_known_args(_joined(words))
    if unknown:
        parser.refuse(next((word for word in unknown if word.startswith("-")), unknown[0]))
    return {name: value for name, value in vars(found).items() if value is not None}


def _joined(words: Sequence[str]) -> list[str]:
    """`--mean-q -1e-3` as `--mean-q=-1e-3`, and `--scores -1,2` too: argparse takes some of them for options."""
    joined: list[str] = []
    for word in words:
        before = joined[-1] if joined else ""
        if (
            word.startswith("-")
            and is_number(word.partition(",")[0])
            and before.startswith("--")
            and "=" not in before
        ):
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return joined


class _Parser(argparse.ArgumentParser):
    """The parser of one command, or of `attn-tui` without one."""

    def __init__(self, command: str, glyphs: Glyphs) -> None:
        guide = GUIDES.get(command, APP)
        super().__init__(
            prog=f"attn-tui {command}".strip(),
            usage=guide.usage,
            description=guide.description,
            epilog=guide.epilog,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._glyphs = glyphs
        self._has_settings = not command
        self._options: list[str] = []
        if command in ("", "inspect"):
            group = self.add_argument_group("file")
            what = "captured queries and keys: .safetensors, .npz or .npy"
            self._add(group, "file", metavar="FILE", help=what, **({} if command else {"nargs": "?"}))
            self._add(
                group, "--axes", metavar="AXES",
                help="the axes of each tensor of queries and keys, where the file does not say them or says them "
                "wrong, such as batch,token,head,d_k",
            )  # fmt: skip
        if command == "inspect":
            self._add_selection()
        if command == "sweep":
            self._add_axes()
        if command == "rules":
            self._add_comparison()
        group = self.add_argument_group("output" if command else "screen")
        if command:
            self._add(group, "--format", choices=FORMATS, help="default: table")
            self._add(group, "-o", "--output", metavar="FILE", help="write to this file, in UTF-8, not to stdout")
        else:
            self._add(group, "--no-mouse", action="store_true", help="leave the mouse to the terminal")
            self._add(group, "--theme", metavar="NAME", help="attn-dark (default), attn-light or one of Textual's")
            self._add(group, "--no-config", action="store_true", help="neither read nor write the settings file")
        self._add(group, "--ascii", action="store_true", help="plain ASCII instead of Unicode")
        self._add(group, "-h", "--help", action="help", help="show this and leave")
        if not command:
            self._add(group, "--version", action=_ShowVersion, nargs=0, help="show the version and leave")
        if command in ("", "report", "sweep", "rules"):
            self._add_parameters(FIELDS if command != "sweep" else FIELDS[1:])
        if command == "cost":
            self._add_shape()
        if command == "softmax":
            self._add_handful()
        if command in ("", "report", "sweep", "softmax", "rules", "inspect"):
            names = SCALE_RULES if command == "inspect" else FIELD["scale"].choices
            self.add_argument_group("scale rules, and what they multiply scores by", _rules(names))

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def refuse(self, word: str) -> NoReturn:
        """Say that this word is not understood, and which option may have been meant."""
        if not word.startswith("-"):
            self.error(f"{word!r} is one word too many")
        import difflib

        name = word.partition("=")[0]
        near = difflib.get_close_matches(name, self._options, 1, cutoff=0.75)
        meant = f" (did you mean {near[0]}?)" if near else ""
        self.error(f"there is no option {name}{meant}")

    def format_help(self) -> str:
        settings = f"\n{settings_guide()}" if self._has_settings else ""
        return self._glyphs.say(super().format_help() + settings)

    def _add_selection(self) -> None:
        group = self.add_argument_group("which heads, under which scale")
        self._add(
            group, "--layer", metavar="I", help="only the layer of this number, as it is printed, or of this name"
        )
        self._add(group, "--head", metavar="H", help="only the head of this number; the first is 0")
        self._add(
            group, "--scale", metavar="RULE",
            help="the rule for the multiplier: file, one of the scale rules below, or a number. A list of heads "
            "shows it in place of the file's own, which is the default; one head is shown under both, by default "
            "unscaled and the file's",
        )  # fmt: skip
        self._add(group, "--multiplier", metavar="X", help="the multiplier of --scale custom (never the divisor)")

    def _add_axes(self) -> None:
        group = self.add_argument_group("what is swept, and how precisely")
        self._add(
            group, "--d-k", metavar="GRID",
            help="the values of d_k: numbers, a:b for all from a to b, a:b:STEP for every STEP-th, a:b:logN for N "
            f"that grow by the same factor, or any of these separated by commas; default {GRID}",
        )  # fmt: skip
        self._add(
            group, "--vary", metavar="NAME=VALUES", action="append",
            help="a second axis: another parameter and its values, such as n-keys=64,128 or scale=sqrt_d_k,d_k or "
            "components=normal,uniform",
        )  # fmt: skip
        self._add(
            group, "--statistics", metavar="NAMES",
            help="the statistics to print, separated by commas, named as in a report's JSON, or all; default: all "
            "but those of gradients and of the number format, which take a run of its own for each point, and in a "
            "table those that fit",
        )  # fmt: skip
        self._add(
            group, "--stderr", metavar="X",
            help="draw further batches at each point until the standard error is X or less in both columns",
        )  # fmt: skip
        self._add(
            group, "--of", metavar="STATISTIC", help="the statistic of that standard error; default entropy_fraction"
        )
        self._add(
            group, "--most-draws", metavar="N",
            help="draw no more than N at a point, whether or not it is reached; default 4096",
        )  # fmt: skip

    def _add_comparison(self) -> None:
        from ..core.lab.rule_rows import SORTABLE

        group = self.add_argument_group("what is compared, and in which order")
        self._add(
            group, "--sort", metavar="COLUMN",
            help=f"the column that rules are sorted by, the largest first: {', '.join(SORTABLE)}; default rule, in "
            "the order of the list below",
        )  # fmt: skip
        self._add(group, "--reverse", action="store_true", help="the other way round")
        self._add(
            group, "--mechanisms", action="store_true",
            help="compare mechanisms over d_k instead: the dot product unscaled and scaled, bilinear, additive, "
            "cosine, and the bounds of their scores",
        )  # fmt: skip

    def _add_parameters(self, fields: Sequence[Field]) -> None:
        groups: dict[str, Any] = {}
        for field in fields:
            if field.group not in groups:
                groups[field.group] = self.add_argument_group(_TITLES.get(field.group, field.group))
            metavar = "RULE" if field.name == "scale" else _METAVARS[field.kind]
            self._add(groups[field.group], field.option, dest=field.name, metavar=metavar, help=_help(field))

    def _add_shape(self) -> None:
        from ..core.attention.cost import SHAPE_FIELDS, Layer
        from ..core.attention.presets import PRESETS

        group = self.add_argument_group("shape of a layer, and its use")
        self._add(
            group, "--preset", metavar="NAME",
            help="start from the layer of a well-known model, at its longest context; what else is given replaces "
            "its own",
        )  # fmt: skip
        usual = Layer()
        for field in SHAPE_FIELDS:
            value = getattr(usual, field.name)
            default = f"; default {field.format(value)}" if value is not None else ""
            text = f"{field.help} Takes {field.accepted}{default}."
            alone = {"nargs": "?", "const": "all"} if field.name == "bias" else {}
            self._add(group, field.option, dest=field.name, metavar=_METAVARS[field.kind], help=text, **alone)
        wide = max(map(len, PRESETS)) + 2
        models = "\n".join(f"{preset.name.ljust(wide)}{preset.model}" for preset in PRESETS.values())
        self.add_argument_group("presets", models)

    def _add_handful(self) -> None:
        from ..core.attention.handful import ALSO, HANDFUL_FIELDS, Handful, scores_text

        group = self.add_argument_group("scores, and what is done to their logits")
        usual = Handful()
        for field in HANDFUL_FIELDS:
            value = getattr(usual, field.name)
            if field.name == "scores":
                metavar, default, takes = "X,X,...", scores_text(value), f"2 to 8 of them, each {field.accepted}"
            else:
                metavar, default, takes = "X", field.format(value), field.accepted
            text = f"{field.help} Takes {takes}; default {default}."
            self._add(group, field.option, dest=field.name, metavar=metavar, help=text)
        self._add_parameters([FIELD[name] for name in ALSO])

    def _add(self, group: Any, *names: str, **settings: Any) -> None:
        group.add_argument(*names, **settings)
        self._options += names


class _ShowVersion(argparse.Action):
    """Looks for the version only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from ..core.export.formats import version

        print(f"attn-tui {version()}")
        parser.exit()


def _help(field: Field) -> str:
    default = field.format(getattr(Parameters(), field.name))
    accepted = field.accepted
    if field.name == "scale":
        accepted = "one of the scale rules below, or a number, which is the multiplier itself"
    return f"{field.help} Takes {accepted}; default {default}.".replace("%", "%%")


def _rules(names: Iterable[str]) -> str:
    """Scale rules as help lists them, a line for each."""
    wide = max(map(len, SCALE_RULES)) + 2
    return "\n".join(f"{name.ljust(wide)}{SCALE_RULES[name].formula}" for name in names)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of descriptions, and leaves help texts a column of their own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)
