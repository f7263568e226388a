"""attn-tui learn: the tour, the interview questions and the bugs to find, printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ....core.learning.items import ITEMS, SECTIONS, Item, count
from ....core.learning.step import Grade, GuessError, TourStep, graded, parse_guess
from ....core.message import message
from ....core.questions.learn import ItemFigures, ReadItems
from ....core.questions.parse import UsageError
from ....core.questions.question import flag, option
from ...views.glyphs import Glyphs
from ...views.lines import Line
from .. import output as printing
from ..output import CODE, Output, OutputFormat
from ..parser import Arguments, CliCommand, Given, arguments
from ..working import ProgressLine

if TYPE_CHECKING:
    from ....core.learning.card import Card
    from ....core.tables.table import Table

_ACCEPTED = message(
    "a step, 1 to {step}, a question, q1 to q{question}, a bug, b1 to b{bug}, or a claim, c1 to c{claim}",
    **{kind: count(kind) for kind in SECTIONS},
)


def _item(text: str) -> Item:
    item = next((item for item in ITEMS if item.word == text.lower()), None)
    if item is None:
        raise UsageError("STEP: must be {accepted}, not {text!r}", accepted=_ACCEPTED, text=text)
    return item


@dataclass(frozen=True)
class LearnArguments(Arguments):
    """The item to print, and a guess at its answer; without an item, all of them."""

    item: Item | None = option(
        "the tour and the questions",
        "",
        "STEP",
        _ACCEPTED,
        nargs="?",
        suggest=[item.word for item in ITEMS],
        read=_item,
    )
    guess: float | None = option("the tour and the questions", "--guess", "X", "your guess at the answer of the step")
    answer: bool = flag("the tour and the questions", "--answer", "print the cause of a bug, too")
    questions: bool = flag("the tour and the questions", "--questions", "leave out the answers, for a handout")
    lang: str | None = None


def _request(given: Given) -> LearnArguments:
    request = arguments(LearnArguments, given, lang=given.get("lang"), guess=None)
    if "guess" not in given:
        return request
    if request.item is None:
        raise UsageError("--guess: needs a step, such as attn-tui learn 3 --guess 20")
    word, step = request.item.word, request.item.content
    if not isinstance(step, TourStep):
        raise UsageError(
            "--guess: only steps, 1 to {count}, ask for a number; {word} does not", count=count("step"), word=word
        )
    try:
        guess = parse_guess(given["guess"], step.figures[step.guess.figure].unit, step.given)
    except GuessError as error:
        raise UsageError("--guess: {error}", error=error) from None
    return replace(request, guess=guess)


def run(request: LearnArguments, output: Output) -> int:
    """Open the app's Learn tab; without a terminal, print the items, or their list; return the exit code."""
    told = request.answer or request.questions or request.guess is not None
    if not told and output.path is None and output.format == "table" and printing.has_screen():
        from ..open_app import OpenApp, open_app

        return open_app(OpenApp(learn=request.item.id if request.item else "", lang=request.lang), output.ascii_only)
    from ....core.tables.learning import anki_text, cards_table
    from ....core.tables.table import written
    from ...views.results.cards import card_lines
    from ...views.results.claims import claim_lines
    from ..printing import page

    if output.format in CODE and (request.item is None or request.item.kind == "bug"):
        raise UsageError(
            "--format: {format} prints the figures of one step or question; name it, such as 1 or q4",
            format=output.format,
        )
    if request.questions and (output.format in CODE or (request.item is not None and request.item.kind == "claim")):
        raise UsageError("--questions: leaves out answers, and neither a claim nor code has one")
    output.check()
    items = [item for item in ITEMS if item.kind != "claim"] if request.item is None else [request.item]
    question = ReadItems(tuple(item.id for item in items))
    width, glyphs = output.text_width, output.glyphs
    said = output._replace(format="table").glyphs.say  # cards are in the chosen language

    def measured() -> list[ItemFigures]:
        return _measured(question, output.messages, request.guess)

    def cards() -> list[Card]:
        if not request.questions:
            return [figures.card for figures in measured()]
        bugs = ReadItems(tuple(item.id for item in items if item.kind == "bug"))
        found = {figures.item: figures.found for figures in _measured(bugs, output.messages)}
        return [item.front(found.get(item.id)) for item in items]

    def text() -> str:
        if request.item is None and not request.questions:
            return page(output, (), _listed(glyphs))
        if request.item is None:
            return page(output, (), [line for card in cards() for line in card_lines(card, None, width, glyphs)])
        if request.questions:
            return page(output, (), card_lines(cards()[0], None, width, glyphs))
        [figures] = measured()
        if request.item.kind == "claim":
            return page(output, (), claim_lines(figures.outcome.claim, figures.outcome, width, glyphs))
        card = figures.card
        if request.item.kind == "bug" and not request.answer:
            told = message("attn-tui learn {word} --answer prints the cause.", word=request.item.word)
            card = replace(card, answer=(told,))
        return page(output, (), card_lines(card, _graded(request, figures), width, glyphs))

    def table() -> Table[Any]:
        if request.item is not None and request.item.kind == "claim":
            return question.table(measured())
        return cards_table(cards())

    def markdown() -> str:
        return written(table(), "markdown", said)

    def anki() -> str:
        if request.questions or (request.item is not None and request.item.kind == "claim"):
            raise UsageError("--format: anki has cards with a question and an answer")
        return anki_text(cards(), said)

    cards_as: dict[OutputFormat, Callable[[], str]] = {"markdown": markdown, "anki": anki}
    output.emit(
        text,
        None if output.format in cards_as else table,
        lambda dialect: question.code(question.answer(), dialect),
        cards_as,
    )
    return 0


def _listed(glyphs: Glyphs) -> list[Line]:
    """Return the list of all items under the titles of their sections."""
    lines: list[Line] = []
    for item in ITEMS:
        if item.number == 1:
            lines += [()] if lines else []
            lines.append(((glyphs.say(SECTIONS[item.kind]), "heading"),))
        lines.append(((f"{item.word:>3}  {glyphs.say(item.title)}", "text"),))
    return lines


def _graded(request: LearnArguments, figures: ItemFigures) -> Grade | None:
    """Return how far off the guess is; None without a guess."""
    step, found = figures.of.content, figures.found
    if request.guess is None or not isinstance(step, TourStep) or not isinstance(found, Mapping):
        return None
    return graded(step, request.guess, found)


def _measured(question: ReadItems, messages: Glyphs, guess: float | None = None) -> list[ItemFigures]:
    """Measure the figures of items; a guess is one at the answer of the only one."""
    figures: list[ItemFigures] = []
    with ProgressLine(message("measuring"), messages) as progress:
        for item in question.items:
            progress.show(len(figures) / len(question.items))
            figures += ReadItems((item,)).answer()
    return [replace(figure, guess=guess) for figure in figures]


COMMAND = CliCommand(
    usage="attn-tui learn [STEP] [--guess X] [--format FORMAT] [-o FILE]",
    description="""\
A tour in twelve steps: what a score is, why its spread grows like sqrt(d_k),
what softmax and gradients make of it, and what trained models do. Every step
asks for a guess; its figures are measured now and stand beside the exact
values. Then interview questions with their answers, and what is wrong
with the usual ones. b1 to b11 are captures made on the spot, with one
defect, two or none, and their diagnosis. On a terminal, the Learn tab of the
app opens. In a pipe and with --format, the list is printed, or the item that
is named; as JSON or as cards (Markdown, or a text that Anki imports), all of
them in full. --questions leaves out the answers: a handout.""",
    examples="""\
examples:
  attn-tui learn                               the tour, in the app
  attn-tui learn | cat                         the list of steps and questions
  attn-tui learn 3                             one step, with its answer
  attn-tui learn 3 --guess 20                  how far off the guess is
  attn-tui learn 1 --guess 'sqrt(d_k)'         a formula as the guess
  attn-tui learn q4                            one question, with its answers
  attn-tui learn b3 --answer                   a bug, its symptoms and its cause
  attn-tui learn --format markdown             flash cards of all of them
  attn-tui learn --format anki -o cards.txt    the same, for Anki to import
  attn-tui learn --questions --lang zh -o handout.html  a handout in Chinese
""",
    options=(LearnArguments,),
    request=_request,
    run=run,
    formats=("table", "json", "markdown", "html", "anki", *CODE),
)
