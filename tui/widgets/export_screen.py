"""The form that exports what a pane shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from ...core.errors import InputError
from .. import output
from ..panes.pane import Pane
from ..picture import picture
from ..views.draft import Draft, edited
from ..views.export import KINDS, Form, form_lines
from ..views.lines import Line, fitted
from .lines import LinesWidget


class FormText(LinesWidget):
    """Shows the form."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.form = form

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        lines = form_lines(self.form, _place(self.form.path.text), width - 4, height - 2, self.glyphs)
        return [fitted((("  ", "text"), *line), width) for line in ((), *lines, ())]


class ExportScreen(ModalScreen[str]):
    """Writes the pane into a file that people name, and returns with a sentence that says so.

    Most keys are characters of a path. All are taken here, in the order in which they come, rather than by bindings.
    """

    def __init__(self, pane: Pane) -> None:
        super().__init__()
        self.pane = pane
        self.form = Form(pane.NAME, "svg", Draft.of(f"attn-tui-{pane.file_name}{KINDS['svg'][1]}"))
        self.text = FormText(self.form)

    def compose(self) -> ComposeResult:
        yield self.text

    def on_key(self, event: events.Key) -> None:
        event.stop()
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
            self._show(self.form.with_path(self.form.path.typed(event.character)))

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        if not self.form.question and event.text.strip():
            self._show(self.form.with_path(self.form.path.typed(event.text.strip().splitlines()[0])))

    def _answer(self, key: str) -> None:
        """To the question whether a file is to be replaced."""
        if key.lower() == "y":
            self._show(replace(self.form, question=""))
            self._write(may_replace=True)
        elif key.lower() == "n":
            self._show(replace(self.form, question=""))

    def _show(self, form: Form) -> None:
        self.form = self.text.form = form
        self.text.redraw()

    def _write(self, may_replace: bool) -> None:
        """Write what is asked for, ask whether it may replace what is there, or say why it cannot be."""
        form = replace(self.form, objection="")
        path = Path(form.path.text)
        try:
            path = _target(form.path.text)
            if not Path(os.path.realpath(path)).parent.is_dir():
                raise output.OutputError("there is no such directory")
            output.check_target(path, (*self.pane.files_read,))
            if path.exists() and not path.is_file():
                raise output.OutputError("is a device or a pipe, where a file is needed")
            if path.exists() and not may_replace:
                there = f"This file exists, with {_size(path.stat().st_size)}. Replace it?"
                self._show(replace(form, question=there))
                return
            text = picture(self.pane.screen) if form.kind == "svg" else self.pane.numbers(form.kind)
            output.write(text, path, self.pane.glyphs.ascii, replace=may_replace)
            self.dismiss(f"{_size(path.stat().st_size)} written to {os.path.abspath(path)}")
        except InputError as error:
            self._show(replace(form, objection=str(error).removeprefix(f"{path}: ")))  # the path stands above it
        except OSError as error:
            self._show(replace(form, objection=error.strerror or str(error)))


def _target(text: str) -> Path:
    """The file that a person means; raises OutputError for what cannot be the name of one."""
    if not text.strip():
        raise output.OutputError("the name of a file is needed")
    if text.endswith((os.sep, f"{os.sep}.", f"{os.sep}..")):
        raise output.OutputError("is a directory, where the name of a file is needed")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise output.OutputError("there is no home directory of that name") from error


def _place(text: str) -> str:
    """Where a path leads that does not say it."""
    try:
        if text.startswith("~"):
            return f"that is {Path(text).expanduser()}"
        return "" if os.path.isabs(text) else f"in the current directory, {Path.cwd()}"
    except (RuntimeError, OSError):  # no such home, or the current directory is gone
        return ""


def _size(size: int) -> str:
    return f"{size} bytes" if size < 1000 else f"{size / 1000:.1f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"
