"""attn-tui learn: the tour, printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....core.learning.grading import GuessError, grade, parse_guess
from ....core.learning.tour.steps import STEPS
from ....core.learning.wording import best
from ...settings.parse import UsageError
from ..command import Command, Given
from ..output import Output
from ..parser import Parser
from ..progress import ProgressLine

if TYPE_CHECKING:
    from ....core.learning.card import Card

_FORMATS = ("table", "json", "markdown")


@dataclass(frozen=True)
class LearnRequest:
    """The step to print, counted from 1, and a guess at its answer; without a step, all of them."""

    step: int | None = None
    guess: float | None = None
    remarks: tuple[str, ...] = ()


def _add_options(parser: Parser) -> None:
    title = "the tour"
    steps = [str(number) for number in range(1, len(STEPS) + 1)]
    parser.add(title, "step", metavar="STEP", nargs="?", suggest=steps, help=f"a step, 1 to {len(STEPS)}")
    parser.add(title, "--guess", metavar="X", help="your guess at the answer of the step")
    parser.add_output(_FORMATS)


def _request(given: Given) -> LearnRequest:
    text = given.get("step")
    if text is None:
        if "guess" in given:
            raise UsageError("--guess: needs a step, such as attn-tui learn 3 --guess 20")
        return LearnRequest()
    if not text.isdecimal() or not 1 <= int(text) <= len(STEPS):
        raise UsageError(f"STEP: must be a number from 1 to {len(STEPS)}, not {text!r}")
    step = STEPS[int(text) - 1]
    guess = None
    if "guess" in given:
        try:
            guess = parse_guess(given["guess"], step.figures[step.guess.figure].unit)
        except GuessError as error:
            raise UsageError(f"--guess: {error}") from None
    return LearnRequest(int(text), guess)


def run(request: LearnRequest, output: Output) -> int:
    """Print the list of steps, or measure and print steps; return the exit code."""
    from ....core.export.learning import learning_json, learning_markdown
    from ...panes.learn.view import card_lines
    from ...views.lines import Line, as_text
    from ..printing import printed

    output.check()
    width, glyphs = output.text_width, output.glyphs

    def text() -> str:
        if request.step is None:
            lines: list[Line] = [((glyphs.say(f"{number:2}  {step.title}"), "text"),)
                                 for number, step in enumerate(STEPS, 1)]  # fmt: skip
            return printed([as_text(lines)], output)
        [card] = _cards(request)
        graded = None
        step = STEPS[request.step - 1]
        if request.guess is not None and card.asked is not None:
            answer = best(card.asked.reading)
            assert answer is not None, "every question has an answer"
            graded = grade(request.guess, answer, step.guess.compare, card.asked.unit)
        return printed([as_text(card_lines(card, graded, width, glyphs))], output)

    output.emit(
        {
            "table": text,
            "json": lambda: learning_json(_cards(request)),
            "markdown": lambda: learning_markdown(_cards(request), glyphs.say),
        }
    )
    return 0


def _cards(request: LearnRequest) -> list[Card]:
    """Measure the figures of the requested steps."""
    from ....core.learning.card import step_card
    from ....core.learning.compute import readings

    numbers = range(1, len(STEPS) + 1) if request.step is None else (request.step,)
    cards: list[Card] = []
    with ProgressLine("measuring the tour") as progress:
        for number in numbers:
            progress.show(len(cards) / len(numbers))
            step = STEPS[number - 1]
            cards.append(step_card(number, step, readings(step.figures)))
    return cards


COMMAND = Command(
    usage="attn-tui learn [STEP] [--guess X] [--format FORMAT] [-o FILE]",
    description="""\
A tour in ten steps: what a score is, why its spread grows like sqrt(d_k), what
softmax and gradients make of it, and what trained models do. Every step asks
for a guess; its figures are measured now and stand beside the exact values.
Without a step, the list of steps; as JSON or Markdown (flash cards), all of
them in full. The Learn pane of the app is the same tour.""",
    examples="""\
examples:
  attn-tui learn                               the list of steps
  attn-tui learn 3                             one step, with its answer
  attn-tui learn 3 --guess 20                  how far off the guess is
  attn-tui learn --format markdown             flash cards
""",
    add_options=_add_options,
    request=_request,
    run=run,
)
