"""The output of commands: results go to stdout or a file, messages to stderr."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, TypeAlias, TypeVar
from zlib import crc32

from ...core.errors import InputError
from ...core.files import MARK, FileError, check_file, check_replaceable, write_bytes, write_texts
from ...core.message import plain, without_commands
from ..language.chosen import Language
from ..views.glyphs import ASCII, IN_LANGUAGE, UNICODE, Glyphs, glyphs_for
from . import interrupts

if TYPE_CHECKING:
    from ...core.program.text import Dialect
    from ...core.questions.question import Question
    from ...core.tables.table import Table

T = TypeVar("T")
OutputFormat: TypeAlias = Literal[
    "table", "json", "jsonl", "csv", "markdown", "html", "python", "torch", "junit", "github", "svg", "anki"
]
FORMATS: tuple[OutputFormat, ...] = ("table", "json", "csv", "markdown", "html")  # of most commands
LISTED: tuple[OutputFormat, ...] = ("table", "json", "jsonl", "csv", "markdown", "html")  # of those that list things
CODE: tuple[OutputFormat, ...] = ("python", "torch")  # that prints the numbers
WITH_CODE: tuple[OutputFormat, ...] = (*FORMATS, *CODE)

PARQUET = ".parquet"  # the ending of a file that is written so, instead of as CSV
FIGURE = ".svg"
CONVERTED = {".pdf": "svg2pdf", ".png": "svg2png", ".eps": "svg2eps"}  # figures, and what of CairoSVG makes them
# How a file of each format ends, if its beginning does not tell whose it is.
_MARKS: Mapping[OutputFormat, str] = {
    "table": "\n{mark}\n",
    **dict.fromkeys((*CODE, "anki"), "# {mark}\n"),
    "markdown": "\n<!-- {mark} -->\n",
    **dict.fromkeys(("svg", "junit", "html"), "<!-- {mark} -->\n"),
    "github": "{mark}\n",
}
# The formats of files by their endings, unless another format is given.
ENDINGS: Mapping[str, OutputFormat] = {".jsonl": "jsonl", ".html": "html"}
# Formats that a file of this ending has in any case.
FIXED: Mapping[str, OutputFormat] = {PARQUET: "csv", **dict.fromkeys((FIGURE, *CONVERTED), "svg")}

WIDEST, _NARROWEST = 100, 60  # cells in a line of prose
_WIDEST_SCREEN = 1000  # cells; nothing that is printed needs more


class Output(NamedTuple):
    """The format of a result, and the file that it is written to; None is stdout."""

    format: OutputFormat = "table"
    path: Path | None = None
    ascii_only: bool = False
    language: Language = "en"  # of tables, pages and messages; other formats are English
    overwrite: bool = False  # replace the file even if it is no result

    @property
    def glyphs(self) -> Glyphs:
        """The characters and the language of the result. Files are UTF-8, whatever the locale."""
        language = self.language if self.format in ("table", "html") else "en"
        if self.path is None:
            return screen_glyphs(self.ascii_only, language)
        return ASCII if self.ascii_only else IN_LANGUAGE[language]

    @property
    def messages(self) -> Glyphs:
        """The characters and the language of messages on stderr."""
        return screen_glyphs(self.ascii_only, self.language)

    @property
    def parquet(self) -> Path | None:
        """The file, if it is a table in Parquet, with the rows of CSV."""
        return self.path if self.path is not None and self.path.suffix == PARQUET else None

    @property
    def conversion(self) -> str:
        """The function of CairoSVG that makes the file of a figure; empty if it is SVG, or another result."""
        return "" if self.path is None else CONVERTED.get(self.path.suffix, "")

    @property
    def on_screen(self) -> bool:
        """Whether the result is printed on a terminal, of any kind."""
        stdout = _stdout()
        return self.path is None and stdout is not None and stdout.isatty()

    @property
    def width(self) -> int:
        """The width of tables in cells."""
        return screen_width() if self.path is None else 80

    @property
    def text_width(self) -> int:
        """The width of prose in cells, within limits that keep it readable."""
        return min(max(self.width, _NARROWEST), WIDEST)

    def check(self, read: Sequence[Path] = ()) -> None:
        """Raise FileError if the result cannot be written, before it is computed; `read` are the input files."""
        if self.path is not None:
            check_file(self.path, read)
            if not self.overwrite:
                check_replaceable(self.path)
            if self.parquet:
                from ...core.tables.table import require_parquet

                require_parquet(str(self.path))
            if self.conversion:
                try:
                    import_module("cairosvg")
                except (ImportError, OSError):  # the library Cairo is not installed, either
                    raise InputError(
                        "{path}: needs CairoSVG and Cairo: pip install 'attn-tui[figure]'; or write an .svg file",
                        path=self.path,
                    ) from None
        elif _stdout() is None:
            raise FileError("stdout is closed; -o FILE writes to a file")

    def _last_look(self) -> Iterator[Any]:
        """Yield nothing; raise FileError if the file has become one of others while the result was computed."""
        if self.path is not None and not self.overwrite:
            check_replaceable(self.path)
        yield from ()

    def emit(
        self,
        text: Callable[[], str] | None = None,
        table: Callable[[], Table[T]] | None = None,
        code: Callable[[Dialect], str] | None = None,
        others: Mapping[OutputFormat, Callable[[], str]] | None = None,
    ) -> None:
        """Render and write a result in its format: as `text` for a terminal, or as one of the formats of a table.

        JSON, JSON Lines, CSV and Parquet are written as the things of the table come. Raise FileError, or
        BrokenPipeError if the reader is gone.
        """
        from ...core.tables.table import pieces, written

        texts: Iterable[str]
        match self.format:
            case "table" if text:
                texts = [text()]
            case "python" | "torch" as dialect if code:
                texts = [self.glyphs.say(code(dialect))]
            case "markdown" as kind if table:
                texts = [written(table(), kind, self.glyphs.say)]
            case "html" if table:
                from ...core.tables.html import html_page

                texts = [html_page(table().page(), self.glyphs.say, self.glyphs.language)]
            case "json" | "jsonl" | "csv" as kind if table:
                if parquet := self.parquet:
                    from ...core.tables.table import parquet_pieces

                    interrupts.raise_exception(writes_file=True)
                    write_bytes(chain(parquet_pieces(table()), self._last_look()), parquet)
                    return
                texts = pieces(table(), kind)
            case other:
                texts = [(others or {})[other]()]
                if self.path is not None and self.conversion:
                    interrupts.raise_exception(writes_file=True)
                    write_bytes(chain(_converted("".join(texts), self.conversion), self._last_look()), self.path)
                    return
        interrupts.raise_exception(writes_file=self.path is not None)  # so that no temporary file is left behind
        self.write(texts)

    def answer(self, question: Question[T], answer: T, text: Callable[[], str]) -> int:
        """Write the answer to a question in its format; return the exit code."""
        self.emit(text, lambda: question.table(answer), lambda dialect: question.code(answer, dialect))
        return 0

    @property
    def is_streamed(self) -> bool:
        """Whether a list is written as its things come."""
        return self.format in ("json", "jsonl", "csv")

    def write(self, texts: Iterable[str]) -> None:
        """Write the pieces of a result as they come; raise FileError or BrokenPipeError as `emit` does."""
        if self.path is not None:
            whole = chain(texts, self._last_look())
            write_texts(whole, self.path, self.ascii_only, last_line=_MARKS.get(self.format, ""))
            return
        encoding = "ascii" if self.ascii_only else sys.stdout.encoding or "utf-8"
        for text in texts:
            text = without_commands(text, self.format == "github")
            try:
                sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
                sys.stdout.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                drop_stdout()
                raise FileError("stdout: {reason}", reason=error.strerror) from error


def _converted(figure: str, conversion: str) -> list[bytes]:
    """Return the pieces of a figure in another format, with the mark in a comment or a chunk of its own."""
    whole: bytes = getattr(import_module("cairosvg"), conversion)(figure)
    if conversion != "svg2png":
        return [whole, f"%{MARK}.\n".encode()]
    chunk = b"tEXtSoftware\0" + MARK.encode()
    end = 12  # bytes of the last chunk
    return [
        *(whole[:-end], (len(chunk) - 4).to_bytes(4, "big"), chunk, crc32(chunk).to_bytes(4, "big"), whole[-end:])
    ]


def _stdout() -> TextIO | None:
    """Return stdout, or None if it was closed before Python started."""
    return sys.stdout


def flush_stdout() -> None:
    """Flush stdout, if there is one; raise what writing raises."""
    if stdout := _stdout():
        stdout.flush()


def screen_glyphs(ascii_only: bool, language: Language = "en") -> Glyphs:
    """Return the characters for stdout: ASCII, and English, on request or if the locale has nothing else."""
    if _stdout() is None:
        return ASCII if ascii_only else IN_LANGUAGE[language]
    return glyphs_for(ascii_only or _is_c_locale(), language)


def _is_c_locale() -> bool:
    """Return whether the environment selects the C locale, which is ASCII only.

    Python writes UTF-8 even then, and sets LC_CTYPE to C.UTF-8 if LANG is C. If no locale is set at all, as in
    containers, most terminals show UTF-8.
    """
    names = [os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if names[1].upper() in ("C.UTF-8", "C.UTF8", "UTF-8"):
        names[1] = ""
    return next((name for name in names if name), "") in ("C", "POSIX")


def is_terminal() -> bool:
    """Return whether stdout is a terminal that can move its cursor."""
    stdout = _stdout()
    return stdout is not None and stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def is_served() -> bool:
    """Return whether the app is to paint through `textual serve`, which reads stdout and shows it in a browser."""
    return "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")


def has_screen() -> bool:
    """Return whether the app can be shown: on a terminal, or in a browser."""
    return is_served() or is_terminal()


def screen_width() -> int:
    """Return the width of the terminal in cells, or 80 if it is unknown. COLUMNS overrides it, whatever it says."""
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST_SCREEN)


# What of a word of over 600 characters, such as a pasted file, says which it is.
_LONG_WORD = re.compile(r"(\S{100})\S{400,}(\S{100})")


def say(text: str, glyphs: Glyphs = UNICODE) -> None:
    """Print a message on one line of stderr, with control characters escaped and very long words shortened."""
    text = text if glyphs.ascii else glyphs.say(text)
    line = _LONG_WORD.sub(r"\1…\2", plain(text))
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is None if it was closed
        sys.stderr.write(without_commands(f"attn-tui: {glyphs.say(line)}\n"))
        sys.stderr.flush()


def point(pointer: str, glyphs: Glyphs = UNICODE) -> None:
    """Print on stderr where in a text an error is: the lines of `InputError.pointer`, if there are any."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(without_commands("".join(f"  {glyphs.say(line)}\n" for line in pointer.splitlines())))
        sys.stderr.flush()


def drop_stdout() -> None:
    """Discard stdout's buffer, so that flushing it at exit does not fail a second time."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
