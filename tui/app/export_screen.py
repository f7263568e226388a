"""The screen that exports a pane to a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from ...core.errors import InputError
from ...core.files import FileError, check_file, write_text
from ...core.message import Message as Said
from ...core.message import message
from ..panes.pane import Pane
from ..terminal.picture import picture
from ..views.export import KINDS, Form, clicked, form_lines
from ..views.fields.entry import LONGEST_PATH, Draft, edited
from ..views.help import pressed_name
from ..views.lines import Line
from ..widgets.lines import LinesWidget
from ..widgets.modal import Modal


class FormText(LinesWidget):
    """Shows the form, in a border with a title."""

    DEFAULT_CLASSES = "modal"

    def __init__(self, form: Form, clicked: Callable[[Form | str], object]) -> None:
        """Show a form; `clicked` is called with the form after a click on a field, or with a clicked key."""
        super().__init__()
        self.form, self._clicked = form, clicked

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return form_lines(self.form, _place(self.form.path.text), width, height, self.glyphs)

    def heading(self, width: int) -> Line:
        return ((self.glyphs.say("export what is on screen"), "heading"),)

    def on_click(self, event: events.Click) -> None:
        width, height = self.size
        place = _place(self.form.path.text)
        x, y = self.place_of(event)
        if 0 <= x < width and 0 <= y < height:
            meaning = clicked(self.form, place, width, height, self.glyphs, x, y)
            if meaning is not None:
                self._clicked(meaning)


class ExportScreen(Modal, ModalScreen[str]):
    """Asks for a file, writes the pane to it, and returns a message; no message if cancelled.

    Most keys are characters of a path. `on_key` handles all keys, instead of bindings, so that they keep their order.
    """

    def __init__(self, pane: Pane) -> None:
        super().__init__()
        self.pane = pane
        ending = KINDS["svg"][1]
        name = f"attn-tui-{pane.file_name}"
        self.form = Form(pane.NAME, "svg", Draft(name + ending, len(name)))
        self.text = FormText(self.form, self._clicked)

    def compose(self) -> ComposeResult:
        yield self.text

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key in ("escape", "ctrl+c"):
            self.dismiss()
        elif self.form.question:
            self._answer(event.key)
        elif event.key == "enter":
            self._write(may_replace=False)
        elif event.key in ("tab", "down"):
            self._show(self.form.turned(1))
        elif event.key in ("shift+tab", "up"):
            self._show(self.form.turned(-1))
        elif (path := edited(self.form.path, event.key)) is not None:
            self._show(self.form.with_path(path))
        elif event.character is not None and event.is_printable:
            self._type(event.character)

    def _clicked(self, meaning: Form | str) -> None:
        """Show the form after a click on a field, or press the key that was clicked."""
        if isinstance(meaning, Form):
            self._show(meaning)
        elif self.on_top:
            self.app.simulate_key(pressed_name(meaning))  # pyright: ignore[reportUnknownMemberType]

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        if not self.form.question and event.text.strip():
            self._type(event.text.strip().splitlines()[0])

    def _type(self, text: str) -> None:
        """Insert a text into the path, if there is room for it."""
        form = self.form.typed(text)
        if len(form.path.text) > LONGEST_PATH:
            form = replace(self.form, objection=message("must be at most {most} characters", most=LONGEST_PATH))
        self._show(form)

    def _answer(self, key: str) -> None:
        """Answer the question whether to replace a file."""
        if key.lower() == "y":
            self._show(replace(self.form, question=""))
            self._write(may_replace=True)
        elif key.lower() == "n":
            self._show(replace(self.form, question=""))

    def _show(self, form: Form) -> None:
        self.form = self.text.form = form
        self.text.redraw()

    def _write(self, may_replace: bool) -> None:
        """Write the file, ask whether to replace an existing one, or show an error."""
        form = replace(self.form, objection="")
        path = Path(form.path.text)
        try:
            path = _target(form.path.text)
            if not Path(os.path.realpath(path)).parent.is_dir():
                raise FileError("no such directory")
            check_file(path, (*self.pane.files_read,))
            if path.exists() and not path.is_file():
                raise FileError("is not a regular file")
            if path.exists() and not may_replace:
                question = message("The file exists ({size}). Replace it?", size=_size(path.stat().st_size))
                self._show(replace(form, question=question))
                return
            if form.kind == "svg":
                text = self.pane.figure() or picture(self.pane.screen)
            else:
                text = self.pane.numbers(form.kind)
            write_text(text, path, self.pane.glyphs.ascii, replace=may_replace)
            self.dismiss(
                message("{size} written to {path}", size=_size(path.stat().st_size), path=os.path.abspath(path))
            )
        except InputError as error:
            self._show(replace(form, objection=_without_path(error, path)))  # the form shows the path
        except OSError as error:
            self._show(replace(form, objection=error.strerror or str(error)))


def _without_path(error: InputError, path: Path) -> str:
    """Return what an error says of a path, without naming it."""
    said = str(error)
    if isinstance(said, Said) and said.template.startswith("{path}: "):
        return message(said.template.removeprefix("{path}: "), **said.values)
    return said.removeprefix(f"{path}: ")


def _target(text: str) -> Path:
    """Return the path that a text names; raises FileError if it cannot be a file."""
    if not text.strip():
        raise FileError("enter a file name")
    if text.endswith((os.sep, f"{os.sep}.", f"{os.sep}..")):
        raise FileError("is a directory, not a file")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise FileError("no such home directory") from error


def _place(text: str) -> str:
    """Return where a path leads if it is not absolute."""
    try:
        if text.startswith("~"):
            return message("expands to {path}", path=Path(text).expanduser())
        return "" if os.path.isabs(text) else message("in the current directory, {folder}", folder=Path.cwd())
    except (RuntimeError, OSError):  # no such home directory, or the current directory was removed
        return ""


def _size(size: int) -> str:
    return (
        message("{size} bytes", size=size)
        if size < 1000
        else message("{size:.1f} kB", size=size / 1000)
        if size < 1e6
        else message("{size:.1f} MB", size=size / 1e6)
    )
