"""Results of long work as they come, of which some may be missing at the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from ...core.errors import InputError
from ...core.message import message
from ...core.work.engine_names import LostEngineError
from .interrupts import INTERRUPTED
from .output import Output, OutputFormat, say

if TYPE_CHECKING:
    from ...core.program.text import Dialect
    from ...core.tables.table import Table

T = TypeVar("T")

_MISSING = 2  # the exit code if some cannot be read, or the workers are lost


class Results(Generic[T]):
    """Iterates over results that could be computed, and tells at the end what is missing.

    Ctrl-C and the loss of the workers end them. An InputError stands for a result that cannot be computed.
    """

    def __init__(
        self, results: Generator[T | InputError, None, None], asked: int, what: Literal["heads", "points"]
    ) -> None:
        self._results = results
        self._asked, self._what = asked, what
        self.count = 0
        self._left_out = 0
        self._refusal: InputError | None = None
        self._ended: KeyboardInterrupt | LostEngineError | None = None  # why there are no more

    def __iter__(self) -> Generator[T, None, None]:
        try:
            with closing(self._results) as results:
                for result in results:
                    if isinstance(result, InputError):
                        self._refusal = self._refusal or result
                        self._left_out += 1
                    else:
                        self.count += 1
                        yield result
        except (KeyboardInterrupt, LostEngineError) as error:
            self._ended = error

    def all(self) -> list[T]:
        """Return them; raise KeyboardInterrupt or LostEngineError if that ended them early."""
        found = [*self]
        if self._ended is not None:
            raise self._ended
        return found

    def emit(
        self,
        output: Output,
        text: Callable[[Sequence[T]], str],
        table: Callable[[Iterable[T]], Table[T]],
        code: Callable[[Sequence[T], Dialect], str] | None = None,
        figure: Callable[[Sequence[T]], str] | None = None,
    ) -> int:
        """Write them in the format of the output, some formats as they come; nothing, if there are none.

        Return the exit code as `code` does.
        """
        with closing(iter(self)) as things:
            first = next(things, None)
            if first is not None and output.is_streamed:
                output.emit(str, lambda: table(chain([first], things)))
            elif first is not None:
                found = [first, *things]
                program = None if code is None else partial(code, found)
                drawn: dict[OutputFormat, Callable[[], str]] = {}
                if figure is not None:
                    drawn["svg"] = partial(figure, found)
                output.emit(lambda: text(found), lambda: table(found), program, drawn)
        return self.code(output)

    def code(self, output: Output) -> int:
        """Return the exit code, after what is missing is said; raise the first error if there are no results."""
        if self._refusal is not None and not self.count and not self._ended:
            raise self._refusal
        glyphs = output.messages
        if self._refusal is not None:
            left_out = {"refusal": self._refusal, "count": self._left_out, "asked": self._asked}
            say(
                message("{refusal} ({count} of {asked} points are left out)", **left_out)
                if self._what == "points"
                else message("{refusal} ({count} of {asked} heads are left out)", **left_out),
                glyphs,
            )
        if self._ended is None:
            return 0 if self._refusal is None else _MISSING
        where, interrupted = "", isinstance(self._ended, KeyboardInterrupt)
        if output.path is not None:
            where = (
                message(" in {path}", path=output.path)
                if self.count
                else message("; {path} is not written", path=output.path)
            )
        kept = {
            "why": message("interrupted") if interrupted else self._ended,
            "count": self.count,
            "asked": self._asked,
            "where": where,
        }
        say(
            message("{why}: kept {count} of {asked} points{where}", **kept)
            if self._what == "points"
            else message("{why}: kept {count} of {asked} heads{where}", **kept),
            glyphs,
        )
        return INTERRUPTED if interrupted else _MISSING
