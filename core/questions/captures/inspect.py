"""The question of what the attention of captured heads is like, under the file's scale or others."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...captures.capture import HeadContext
from ...captures.settings import AS_IN_FILE, FILE, HEAD_FIELD, HeadSetting, setting_of_a
from ...errors import InputError, ParameterError
from ...message import message, reason_of
from ...parameters import FIELD, UNSCALED
from ...scales import SCALE_RULES, rules_that_need
from ..parse import METAVARS, UsageError, parameter_help, value_of, whole_number
from ..question import option
from .captured import HeadsQuestion, HeadTask, head_number

if TYPE_CHECKING:
    from ...diagnosis.heads.ranking import HeadFacts
    from ...program.text import Dialect
    from ...tables.heads import Inspected
    from ...tables.table import Table

_TITLE = "heads and scale"


def _setting(name: str) -> Any:
    """Return the option of a field of head settings; it stays text, for they are read together."""
    field = HEAD_FIELD[name]
    words = parameter_help(field, field.accepted, field.format(getattr(AS_IN_FILE, name)))
    return option(_TITLE, field.option, METAVARS[field.kind], words, suggest=field.choices)


def _users(name: str) -> str:
    """Name the rules whose multiplier depends on a setting."""
    return ", ".join(rules_that_need(name))


def _context(name: str, flag: str, metavar: str, words: str) -> Any:
    """Return the option of a parameter that a file may not say."""
    return option(_TITLE, flag, metavar, words, read=lambda text: value_of(FIELD[name], text, flag))


@dataclass(frozen=True)
class InspectCaptures(HeadsQuestion["Sequence[Inspected]"]):
    """Measure heads, or replay every scale rule on them; without layer and head, every head."""

    COMMAND: ClassVar[str] = "inspect"
    layer: str | None = option(_TITLE, "--layer", "I", "only this layer, by number or name")
    head: int | None = option(_TITLE, "--head", "H", "only this head; the first is 0", read=head_number)
    scale: str | None = option(
        _TITLE,
        "--scale",
        "RULE",
        "file (default), a name of `attn-tui help rules`, a number, or a formula such as 'log(n)/sqrt(d)'. A "
        "list of heads uses this scale instead of the file's; of a single head, it is that of column B",
        suggest=("file", *SCALE_RULES),
    )
    against: str | None = option(
        _TITLE,
        "--against",
        "A",
        "what column A is, if a single head is shown: B with another scale, format, arithmetic or soft-cap, "
        "such as unscaled (default), file (default with --scale), precision=float16 or d_k,softcap=0",
        suggest=(UNSCALED, *HEAD_FIELD["scale"].choices),
    )
    multiplier: str | None = _setting("multiplier")
    precision: str | None = _setting("precision")
    arithmetic: str | None = _setting("arithmetic")
    softcap: str | None = _setting("softcap")
    rules: str | None = option(
        _TITLE,
        "--rules",
        "all",
        "replay every scale rule on 64 rows of each head: how far attention would be from the original, and "
        "which rule makes a saturated head healthy",
        choices=("all",),
    )
    worst: int | None = option(
        _TITLE,
        "--worst",
        "N",
        "only the N heads most worth a look, worst first, each with the reason for its status: those whose "
        "scale the evidence contradicts, the others by σ / √(2 ln n), healthy ones last",
        read=lambda text: whole_number("--worst", text),
    )
    context_factor: float | None = _context(
        "context_factor",
        "--context-factor",
        "X",
        message(
            "how many times longer the context was made after training, if the file lacks the model's "
            "configuration; used by {users}",
            users=_users("context_factor"),
        ),
    )
    position: int | None = _context(
        "position",
        "--position",
        "N",
        message(
            "the position of the last query, if the text is not the start of its context; used by {users}",
            users=_users("position"),
        ),
    )
    layer_index: int | None = _context(
        "layer",
        "--layer-index",
        "N",
        message(
            "the number of the layer, from 0, if the file does not say it; used by {users}", users=_users("layer")
        ),
    )
    temperature: float | None = _context(
        "temperature",
        "--temperature",
        "X",
        message("the factor of cosines that the head learned; used by {users}", users=_users("temperature")),
    )
    setting: HeadSetting = AS_IN_FILE  # of B

    @property
    def context(self) -> HeadContext:
        """What the file may not say."""
        given = {field: getattr(self, name) for name, field in OF_CONTEXT.items() if getattr(self, name) is not None}
        return HeadContext(**given)

    @property
    def selected(self) -> tuple[str | None, int | None]:
        return self.layer, self.head

    @property
    def file_name(self) -> str:
        layer, head = self.chosen[0][0]
        return f"{self.captures[0].path.stem}-{f'layer{layer.index}-head{head}' if self.asked == 1 else 'heads'}"

    @property
    def is_whole(self) -> bool:
        """Whether a single head is shown at length."""
        return self.asked == 1 and self.worst is None and self.rules is None

    @property
    def settings(self) -> Sequence[HeadSetting]:
        """What heads are measured under: A and B of a single one, or B."""
        b = self.setting
        if not self.is_whole:
            return (b,)
        return against_setting(b, self.against or (UNSCALED if b.scale == FILE else FILE)), b

    def tasks(self) -> Iterator[HeadTask]:
        from ...work import heads

        if self.rules is not None:
            return self.on_heads(heads.replay_rules, self.context, () if self.scale is None else (self.scale,))
        return self.on_heads(heads.measure, self.settings, self.context)

    def reasons(self, measured: Sequence[Inspected]) -> Iterator[HeadTask]:
        """Yield the work that finds what the reasons for the status of measured heads come from, layer by layer."""
        from ...work.heads import explain

        asked = {(head.subject.layer.path, head.subject.layer.position) for head, _ in measured}
        for capture in self.captures:
            layers = [layer for layer in capture.layers if (layer.path, layer.position) in asked]
            items = [((layer.position, head), layer) for layer in layers for head in range(layer.heads)]
            yield HeadTask(explain, (capture,), items)

    def ranked(self, measured: Sequence[Inspected], explained: Iterable[Any]) -> list[Inspected]:
        """Return the heads most worth a look, worst first, and why; `explained` are the results of `reasons`."""
        from ...diagnosis.heads.ranking import rank

        known: dict[tuple[Path, int], dict[int, HeadFacts]] = {}
        for layer, head, each in self.with_layers(explained, self.reasons(measured)):
            known.setdefault((layer.path, layer.position), {})[head] = each
        return [*rank([head for head, _ in measured], known)[: self.worst]]

    def heads(self, results: Iterator[Any]) -> Generator[Any, None, None]:
        """Yield what the table lists as results come; an InputError stays one."""
        for each in self.with_layers(results):
            yield each if isinstance(each, InputError) or self.rules is not None else (each, None)

    def result(self, results: Sequence[Any]) -> Sequence[Inspected]:
        heads = [*self.heads(iter(results))]
        if self.worst is None:
            return heads
        return self.ranked(heads, self.local(self.reasons(heads)))

    def table(self, answer: Iterable[Any]) -> Table[Any]:
        """Return the heads, or their replays, which may still come."""
        from ...tables.heads import apart_of, inspect_table, replay_table

        if self.rules is not None:
            return replay_table(self.captures, answer, self.asked)
        settings = self.settings
        asked = len([*answer]) if self.worst is not None else self.asked * len(settings)
        return inspect_table(self.captures, answer, asked, apart_of(settings), whole=self.is_whole)

    def code(self, answer: Sequence[Inspected], dialect: Dialect) -> str:
        from ...program.captured import head_code

        return head_code(answer[0][0], dialect, replace(self, paths=self.paths[:1]).line())


# Options for what a file may not say, and the fields of HeadContext.
OF_CONTEXT = {
    "context_factor": "context_factor",
    "position": "position",
    "layer_index": "layer",
    "temperature": "temperature",
}


def against_setting(b: HeadSetting, text: str) -> HeadSetting:
    """Return the setting of A; raise UsageError if the text is not accepted."""
    try:
        return setting_of_a(b, text)
    except ParameterError as error:
        refusal = UsageError("--against: {reason}", reason=reason_of(str(error), "against"))
        refusal.pointer = error.pointer
        raise refusal from None
