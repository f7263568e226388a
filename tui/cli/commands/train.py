"""attn-tui train: what the scale does to learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....core.grid import parse_grid
from ....core.scales import SCALE_RULES, ScaleName
from ...settings.parse import UsageError, did_you_mean
from ..command import Command, Given
from ..output import Output
from ..parser import Parser
from ..progress import ProgressLine

if TYPE_CHECKING:
    from ....core.training.optimisers import Optimiser
    from ....core.training.race import Curves, Race, Result

_LARGEST = 1024  # d_k
_RATES = {"sgd": 2.0, "adam": 0.01}  # learning rates by default


@dataclass(frozen=True)
class TrainRequest:
    """The races to run, one a d_k."""

    d_ks: tuple[int, ...]
    rules: tuple[ScaleName, ...]
    optimiser: Optimiser
    rate: float
    steps: int
    seeds: int
    warm_up: int
    seed: int
    remarks: tuple[str, ...] = ()

    def races(self) -> list[Race]:
        """Return the races."""
        from ....core.training.race import Race

        return [
            Race(d_k, self.rules, self.rate, self.steps, self.seeds, self.optimiser, self.warm_up, self.seed)
            for d_k in self.d_ks
        ]


def _add_options(parser: Parser) -> None:
    title = "training"
    parser.add(title, "--d-k", metavar="GRID", help="widths, such as 16,64,256 (default); at most 1024")
    parser.add(title, "--rules", metavar="RULES", help="scale rules; default none,sqrt_d_k,d_k", suggest=_rules())
    parser.add(title, "--optimizer", choices=tuple(_RATES), metavar="NAME", help="sgd (default) or adam")
    parser.add(title, "--lr", metavar="X", help="the learning rate; default 2 for sgd, 0.01 for adam")
    parser.add(title, "--warm-up", metavar="N", help="steps over which the learning rate grows from 0; default 0")
    parser.add(title, "--steps", metavar="N", help="steps of each run; default 200")
    parser.add(title, "--seeds", metavar="N", help="runs under each rule; default 10")
    parser.add(title, "--seed", metavar="N", help="the first seed; default 0")
    parser.add_output()


def _rules() -> tuple[ScaleName, ...]:
    return tuple(name for name in SCALE_RULES if name != "custom")


def _request(given: Given) -> TrainRequest:
    optimiser: Optimiser = given.get("optimizer") or "sgd"
    grid = parse_grid(given.get("d_k") or "16,64,256")
    if max(grid) > _LARGEST:
        raise UsageError(f"--d-k: must be at most {_LARGEST} here, not {max(grid)}")
    return TrainRequest(
        tuple(grid),
        _chosen(given.get("rules") or "none,sqrt_d_k,d_k"),
        optimiser,
        _number(given, "lr", _RATES[optimiser], 1e-6, 1e4),
        int(_number(given, "steps", 200, 1, 100_000, whole=True)),
        int(_number(given, "seeds", 10, 1, 1000, whole=True)),
        int(_number(given, "warm_up", 0, 0, 100_000, whole=True)),
        int(_number(given, "seed", 0, 0, 2**32 - 1, whole=True)),
    )


def _chosen(text: str) -> tuple[ScaleName, ...]:
    found: list[ScaleName] = []
    for word in text.split(","):
        name = next((name for name in _rules() if name == word.strip()), None)
        if name is None:
            raise UsageError(f"--rules: {word.strip()!r} is no scale rule{did_you_mean(word.strip(), _rules())}")
        if name not in found:
            found.append(name)
    return tuple(found)


def _number(given: Given, name: str, default: float, low: float, high: float, whole: bool = False) -> float:
    text: Any = given.get(name)
    if text is None:
        return default
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        kind = "a whole number" if whole else "a number"
        option = f"--{name.replace('_', '-')}"
        raise UsageError(f"{option}: must be {kind} from {low:g} to {high:g}, not {text!r}")
    return number


def run(request: TrainRequest, output: Output) -> int:
    """Run the races and print how each rule did; return the exit code."""
    from ....core.blas import one_blas_thread
    from ....core.export.training import training_csv, training_json, training_markdown
    from ....core.training.race import results
    from ....core.training.race import run as race_run

    output.check()
    found: list[tuple[Curves, Sequence[Result]]] = []
    races = request.races()
    with one_blas_thread():
        for number, race in enumerate(races):
            with ProgressLine(f"training at d_k {race.d_k}, {number + 1} of {len(races)}") as progress:
                curves: Curves | None = None
                for curves in race_run(race):
                    progress.show(curves.done / race.steps)
            assert curves is not None
            found.append((curves, results(curves)))
    output.emit(
        {
            "json": lambda: training_json(found),
            "csv": lambda: training_csv(found),
            "markdown": lambda: training_markdown(found, output.glyphs.say),
            "table": lambda: _table(request, found, output),
        }
    )
    return 0


def _table(request: TrainRequest, found: Sequence[tuple[Curves, Sequence[Result]]], output: Output) -> str:
    """Return a table of the races, and what weights recall if they are used under another rule."""
    from rich.text import Text

    from ....core.export.training import HEADER, training_rows
    from ...views.lines import as_text
    from ..printing import printed, title_lines

    glyphs = output.glyphs
    words = [
        "associative recall, 16 pairs, 8 labels",
        f"{request.optimiser}, learning rate {request.rate:g}",
        f"{request.steps} steps",
        f"{request.seeds} seeds",
    ]
    lines = _aligned([list(HEADER), *training_rows(found)], glyphs.say)
    parts = [title_lines(words, output.text_width, glyphs), Text(), as_text(((line, "text"),) for line in lines)]
    if len(request.rules) > 1:
        parts += [Text(), Text(glyphs.say("Recalled if weights trained under a rule are used under another:"))]
        rows = [["d_k", "trained with", *request.rules]]
        for curves, _ in found:
            assert curves.used is not None
            for rule, shares in zip(request.rules, curves.used, strict=True):
                rows.append([str(curves.race.d_k), rule, *(f"{100 * share:.0f} %" for share in shares)])
        parts.append(as_text(((line, "text"),) for line in _aligned(rows, glyphs.say)))
    return printed(parts, output)


def _aligned(rows: Sequence[Sequence[str]], say: Any) -> list[str]:
    said = [[say(cell) for cell in row] for row in rows]
    wide = [max(map(len, column)) for column in zip(*said, strict=True)]
    return ["  ".join(_cell(*each) for each in zip(row, wide, range(len(wide)), strict=True)) for row in said]


def _cell(text: str, size: int, column: int) -> str:
    return text.ljust(size) if column == 1 else text.rjust(size)


COMMAND = Command(
    usage="""attn-tui train [--d-k GRID] [--rules RULES] [--optimizer NAME] [--lr X]
                        [--steps N] [--seeds N] [--warm-up N]
                        [--format FORMAT] [-o FILE]""",
    description="""\
Train one layer of attention to recall labels, under several scale rules: the
same task, the same seeds, the same initial weights, with components of q and k
of variance 1. Print for each rule the loss at the end, the share of labels that
are recalled, the steps until it is 90 %, how many runs diverged, the entropy of
the attention before and after, and the norm of the first gradient of W_q and
W_k; then what is recalled if weights trained under one rule are used under
another.""",
    examples="""\
examples:
  attn-tui train                                  without a scale, and with two
  attn-tui train --rules none,sqrt_d_k --lr 5 --d-k 64
  attn-tui train --optimizer adam --rules sqrt_d_k,rms_sqrt_d_k --format json
""",
    add_options=_add_options,
    request=_request,
    run=run,
)
