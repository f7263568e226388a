"""The base class of panes, and what panes need of the app."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from textual import events
from textual.actions import SkipAction
from textual.containers import Container
from textual.message import Message

from ...core.errors import InputError
from ...core.field import Field
from ...core.message import message
from ...core.parameters import Parameters
from ...core.questions.question import Question
from ...core.questions.request import Crashed, Progress, Request
from ...core.statistics.catalogue import Statistic
from ...core.work.workers import Pace
from ..compute.engine import Engine, EngineError
from ..views.bars import Key, parameters_status, progress_status
from ..views.fields.entry import FieldEntry
from ..views.glyphs import Glyphs
from ..views.lines import Line
from ..widgets.lines import LinesWidget
from ..widgets.placed import Blank
from ..widgets.typing import pasted_line

if TYPE_CHECKING:
    from ...core.program.text import Dialect
    from ...core.tables.table import Format
    from ..views.fields.choice_list import ChoiceList


def next_where(wanted: Sequence[bool], at: int, direction: int) -> int | None:
    """Return the next index in this direction whose item is wanted, around the end of a list; None if none is."""
    count = len(wanted)
    order = ((at + direction * step) % count for step in range(1, count + 1))
    return next((index for index in order if wanted[index]), None)


class FileHead(NamedTuple):
    """A head of a file, which the Capture pane shows; Esc there leads back to the pane `source`."""

    path: Path
    place: tuple[int, int]  # position of the layer, head
    baseline: Path | None
    source: str


class Host(Protocol):
    """What panes need of the app."""

    parameters: Parameters  # shared by all panes
    glyphs: Glyphs
    engine: Engine
    as_left: bool  # whether the parameters are still the saved ones
    keymap: Mapping[str, str]  # the user's own keys, by the names of actions

    def change(self, parameters: Parameters) -> None:
        """Replace the parameters; the pane on screen follows at once."""
        ...

    def to_lab(self, parameters: Parameters) -> None:
        """Show the Lab with these parameters."""
        ...

    def next_view(self) -> None:
        """Show the next view of the tab, if it has others."""
        ...

    def to_pane(self, name: str, item: Any = None) -> None:
        """Show the pane with this name, and in it an item, if one is given."""
        ...

    def note_shown(self, pane: Pane) -> None:
        """Note what undo restores of a pane, which an answer changed, without a step."""
        ...

    def expect_answer(self) -> None:
        """Let the next frame wait a moment for the answer to a request."""
        ...

    def show_answer(self) -> None:
        """Paint the next frame."""
        ...

    def show_status(self) -> None:
        """Show the pane's status in the top bar again."""
        ...

    def show_keys(self) -> None:
        """Show the pane's keys in the bottom bar again."""
        ...

    def say(self, text: str) -> None:
        """Show a message at the bottom of the screen until the next key."""
        ...

    def alert(self, text: str) -> None:
        """Show such a message, ring the bell, and have the terminal notify the user."""
        ...

    def choose(self, choices: ChoiceList, take: Callable[[Sequence[str]], object]) -> None:
        """Show a list; `take` is called with the values of the chosen rows, and not at all if it is cancelled."""
        ...


@dataclass(eq=False)
class Answered(Message, bubble=False):
    """The engine answered a request of this pane. Not frozen, because Textual stores state in messages."""

    request: Request
    answer: object


class Pane(Blank, Container, can_focus=True):
    """A pane of the app."""

    NAME: ClassVar[str]  # as the top bar shows it
    KEYS: ClassVar[tuple[Key, ...]]  # as the bottom bar shows them at first, the first ones first

    def __init__(self, host: Host) -> None:
        super().__init__(classes="pane")
        self.host = host
        self.glyphs = host.glyphs
        # Sends a request to the engine; its answers go to `show_answer`.
        self.ask: Callable[[Request], None] = partial(host.engine.ask, receive=self._receive)
        self.progress: float | None = None  # of a long computation, 0 to 1
        self.pace: Pace | None = None  # of the workers that perform it, if there are any

    @property
    def parameters(self) -> Parameters:
        """The app's parameters."""
        return self.host.parameters

    @property
    def keys(self) -> Sequence[Key]:
        """The keys that the bottom bar shows, the first ones first; panes whose parts take keys say theirs."""
        return self.KEYS

    # Called by the app

    def show_item(self, item: Any) -> None:
        """Show an item: a claim or statistic by its name, scores, a race, or a head of a file."""

    @property
    def view_name(self) -> str:
        """What the tab calls the view on screen; empty if the pane has one."""
        return ""

    def show_view(self, name: str) -> None:
        """Show the view with this name, of those that the tab names."""

    def follow(self) -> None:
        """Show the parameters, which changed or were shown by another pane, and request missing results."""

    def leave(self) -> None:
        """Withdraw requests whose answers only this pane shows; called before another pane is shown."""

    @property
    def entry(self) -> FieldEntry[Any] | None:
        """What is being typed into a field."""
        return None

    @property
    def is_typing(self) -> bool:
        """Whether a value is being typed."""
        return self.entry is not None

    def action_type(self, character: str) -> None:
        """Type into the value at hand; raises SkipAction where there is none, as in panes that do not define this."""
        raise SkipAction

    def on_paste(self, event: events.Paste) -> None:
        """Type the first line of what is pasted into the value at hand, if there is one."""
        line = pasted_line(event)
        with suppress(SkipAction):
            if line:
                self.action_type(line)

    @property
    def refusal(self) -> str | None:
        """Why the text that is being typed is refused."""
        return self.entry.objection if self.entry else None

    def end_typing(self) -> None:
        """Commit what is being typed; a refused text is dropped."""

    def leave_field(self) -> None:
        """Commit what is being typed; if it is refused, what stood before stays, and the reason is shown."""
        refusal = self.refusal
        self.end_typing()
        if refusal:
            self.host.say(message("{reason}.", reason=refusal))

    @property
    def undo_state(self) -> object:
        """What undo restores of this pane besides the parameters; compared with ==."""
        return None

    def restore_state(self, state: Any) -> None:
        """Restore what `undo_state` returned; `follow` is called after it, or when the pane is shown."""

    @property
    def saved_settings(self) -> Mapping[str, Any]:
        """What the settings file keeps of this pane, as it stores it."""
        return {}

    def statuses(self) -> Sequence[Line]:
        """Return the status at the right of the top bar, in forms from long to short."""
        if self.progress is not None:
            at = message("d_k {d_k}", d_k=self.parameters.d_k)
            return progress_status(self.progress, self.glyphs, at, self.pace)
        return parameters_status(self.parameters, self.glyphs)

    @property
    def topic(self) -> Field | Statistic | None:
        """The field or statistic that the help explains first."""
        return None

    @property
    def is_current(self) -> bool:
        """Whether everything on screen is the complete answer to the current requests."""
        return True

    @property
    def is_stale(self) -> bool:
        """Whether the numbers on screen are dimmed, because they are not current."""
        return False

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.host.show_keys()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        self.host.show_keys()

    def on_focus(self) -> None:
        self.call_next(self._redraw_borders)  # by then `has_focus` is set

    def on_blur(self) -> None:
        self.call_next(self._redraw_borders)

    def _redraw_borders(self) -> None:
        for widget in self.query(LinesWidget):
            if widget.LEADS:
                widget.redraw()

    # Answers of the engine

    def _receive(self, request: Request, answer: object) -> None:
        self.post_message(Answered(request, answer))

    def on_answered(self, message: Answered) -> None:
        if isinstance(message.answer, Crashed):
            raise EngineError.of(message.answer)
        if isinstance(message.answer, Progress):
            self.pace = message.answer.pace
        before = self.undo_state
        self.show_answer(message.request, message.answer)
        if self.undo_state != before:
            self.host.note_shown(self)
        self.host.show_answer()

    def show_answer(self, request: Request, answer: object) -> None:
        """Show an answer of the engine, which may belong to a replaced request or be partial."""

    def show_progress(self, fraction: float | None) -> None:
        """Show how much of a long computation is done, 0 to 1; None if there is none."""
        if fraction != self.progress:
            self.progress = fraction
            self.host.show_status()

    # Export and copying

    async def complete(self) -> None:
        """Wait a moment for what a command prints, if not all of it is on screen."""

    @property
    def question(self) -> Question[Any]:
        """What the pane shows, as a command answers it; raises InputError, with a sentence, if no command does."""
        raise InputError("No command prints what this shows.")

    def answered(self) -> Any:
        """Return the complete answer to the question; raise InputError, with a sentence, if there is none."""
        raise InputError("There are no numbers to export here.")

    def command(self) -> str:
        """Return the shell command that prints these numbers; raises InputError if there is none."""
        return self.question.line(self.glyphs.ascii)

    def numbers(self, kind: Format) -> str:
        """Return the numbers on screen, exactly as the pane's command prints them in this format."""
        answer = self.answered()
        return self.question.written(answer, kind, self.glyphs.say, self.glyphs.ascii)

    def figure(self) -> str | None:
        """Return a figure of these numbers as SVG; None if a picture of the screen shows them."""
        return None

    def code(self, dialect: Dialect) -> str:
        """Return a program that prints these numbers; raises InputError, with a sentence, if there is none."""
        return self.question.code(self.answered(), dialect)

    @property
    def file_name(self) -> str:
        """The default name of an exported file without its ending, such as lab-d64."""
        try:
            return self.question.file_name
        except InputError:
            return self.NAME.lower()

    @property
    def files_read(self) -> Sequence[Path]:
        """The files that the numbers come from, which an export must not overwrite."""
        try:
            return self.question.files
        except InputError:
            return ()
