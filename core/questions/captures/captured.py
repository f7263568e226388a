"""What questions about captured heads share: the options of their files, and work that is cut into heads."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from ...captures.capture import Hints, Meaning, capture_path
from ...captures.files import ENDINGS, CaptureError
from ...diagnosis.groups import numbers_in_words
from ...errors import InputError
from ...files import read_file
from ...message import message, plain
from ..parse import UsageError
from ..question import Question, option, option_words, path_word

if TYPE_CHECKING:
    from ...captures.capture import CaptureContents, Layer
    from ...captures.head import CaptureFile
    from ...diagnosis.configuration import Configuration
    from ...work.heads import Source
    from ...work.part import Part

A = TypeVar("A")
Head: TypeAlias = "tuple[Layer, int]"

CAPTURES = message("captured queries and keys: {endings}, or a folder", endings=ENDINGS)


class HeadTask(NamedTuple):
    """The same work on items of captures, such as heads, each with its layer."""

    work: Callable[..., Iterator[tuple[float, Any]]]  # of `core.work.heads`: called with captures, item and arguments
    captures: Sequence[CaptureFile]
    items: Sequence[tuple[Any, Layer]]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CaptureQuestion(Question[A]):
    """A question about captures, and how files are read that do not tell everything of themselves."""

    COMMAND: ClassVar[str]
    axes: str | None = option(
        "file",
        "--axes",
        "AXES",
        "the axes of each tensor of queries and keys, if the file lacks them or has them wrong, such as "
        "batch,token,head,d_k",
    )
    mask_true: Meaning | None = option(
        "file",
        "--mask-true",
        "WORD",
        "what True and 1 in masks mean: visible, as in scaled_dot_product_attention, or hidden, as in "
        "nn.MultiheadAttention",
        choices=("visible", "hidden"),
    )
    tensor: str | None = option(
        "file",
        "--tensor",
        "NAMES",
        "the tensors of queries and keys, if their names do not tell, such as 'q=h.*.foo,k=h.*.bar'; * is the "
        "number of the layer, and v=NAME may follow",
    )
    by_content: bool = field(default=False, compare=False, kw_only=True)  # whether files are known by their bytes
    # The captures, if they are open. For a table or a program, CaptureContents are enough.
    opened: tuple[Any, ...] = field(default=(), compare=False, repr=False, kw_only=True)

    @property
    def words(self) -> Sequence[str]:
        return [self.COMMAND, *option_words(self)]

    @property
    def hints(self) -> Hints:
        """What the user says of each file."""
        return Hints(self.axes, self.mask_true, self.tensor)

    @cached_property
    def captures(self) -> Sequence[CaptureFile]:
        """The captures, opened once; raise InputError if one cannot be read."""
        raise NotImplementedError

    @property
    def notes(self) -> Iterable[str]:
        """Everything that was assumed of the captures."""
        raise NotImplementedError

    def tasks(self) -> Iterable[HeadTask]:
        """Yield the work, in the order of its results."""
        raise NotImplementedError

    @property
    def files(self) -> Sequence[Path]:
        return tuple(file for capture in self.captures for file in (capture.path, *capture.files))

    @cached_property
    def sources(self) -> dict[Path, Source]:
        """How workers open each capture, by its path."""
        from ...work.heads import source_of

        return {
            capture.path: source_of(capture, capture.path, self.hints, self.by_content) for capture in self.captures
        }

    def parts(self) -> Iterator[Part[Any]]:
        return self.parts_of(self.tasks())

    def parts_of(self, tasks: Iterable[HeadTask]) -> Iterator[Part[Any]]:
        """Yield the parts of some tasks."""
        from ...work.heads import parts

        for task in tasks:
            sources = [self.sources[capture.path] for capture in task.captures]
            yield from parts(task.work, sources, task.items, task.arguments)

    def local(self, tasks: Iterable[HeadTask]) -> Iterator[Any]:
        """Yield the results of some tasks, from the captures as they are open in this thread."""
        for task in tasks:
            for item, _ in task.items:
                for _, figures in task.work(*task.captures, item, *task.arguments):
                    if figures is not None:
                        yield figures

    def answer(self) -> A:
        return self.result([*self.local(self.tasks())])

    def with_layers(
        self, results: Iterable[Any], tasks: Iterable[HeadTask] | None = None
    ) -> Generator[Any, None, None]:
        """Yield results of tasks, by default all, with the layers of this process: workers know no names of files."""
        from ...work.heads import with_layer

        layers = (layer for task in (self.tasks() if tasks is None else tasks) for _, layer in task.items)
        for result, layer in zip(results, layers, strict=False):
            yield result if isinstance(result, InputError) else with_layer(result, layer)


@dataclass(frozen=True)
class HeadsQuestion(CaptureQuestion[A]):
    """A question about heads of one or more captures."""

    paths: tuple[Path, ...] = option(
        "file",
        "",
        "FILE",
        CAPTURES,
        nargs="+",
        read=lambda names: tuple(map(capture_path, names)),
        write=path_word,
    )
    only: Head | None = field(default=None, compare=False, kw_only=True)  # of the only capture, instead of others

    @property
    def words(self) -> Sequence[str]:
        if self.only is None:
            return super().words
        named: Any = replace(self, only=None)
        layer, head = self.only
        return replace(named, layer=layer_word(self.captures[0].layers, layer), head=head).words

    @cached_property
    def captures(self) -> Sequence[CaptureFile]:
        from ...captures.reader import open_captures
        from ...diagnosis.disagreement import with_disagreements

        if self.opened:
            return self.opened
        return [with_disagreements(capture, self.configuration) for capture in open_captures(self.paths, self.hints)]

    @cached_property
    def configuration(self) -> Configuration | None:
        """What the user gave as the model's configuration; None: the file's."""
        return None

    @property
    def notes(self) -> Iterator[str]:
        several = len(self.captures) > 1
        for capture in self.captures:
            for note in self.notes_on(capture):
                yield message("{path}: {note}", path=plain(capture.path), note=note) if several else note

    def notes_on(self, capture: CaptureFile) -> Sequence[str]:
        """Return what was assumed of a capture, and what its layers disagree on."""
        return capture.notes

    @cached_property
    def chosen(self) -> Sequence[Sequence[Head]]:
        """The heads asked for, of each capture; raise CaptureError if there are none."""
        if self.only is not None:
            return [[self.only]]
        return [chosen_heads(capture, *self.selected) for capture in self.captures]

    @property
    def selected(self) -> tuple[str | None, int | None]:
        """The layer and the head asked for; None means any."""
        return None, None

    @property
    def asked(self) -> int:
        """The number of heads asked for."""
        return sum(map(len, self.chosen))

    def on_heads(self, work: Callable[..., Iterator[tuple[float, Any]]], *arguments: Any) -> Iterator[HeadTask]:
        """Yield the work on the heads asked for."""
        for capture, heads in zip(self.captures, self.chosen, strict=True):
            yield HeadTask(work, (capture,), [((layer.position, head), layer) for layer, head in heads], arguments)


@dataclass(frozen=True)
class VerdictQuestion(HeadsQuestion[A]):
    """A question about heads of which a scale is expected.

    Where there is evidence, verdicts say how layers disagree; notes need not.
    """

    config: Path | None = option(
        "file",
        "--config",
        "FILE",
        "the model's config.json: it says which scale is expected, instead of the capture",
        read=Path,
        write=path_word,
    )
    expect: str | float | None = option(
        "file",
        "--expect",
        "FORMULA",
        "the multiplier that is intended: a rule, a number or a formula such as '1/sqrt(d)'",
    )
    given: Configuration | None = field(
        default=None, compare=False, kw_only=True
    )  # what `config` holds, if it is read

    def notes_on(self, capture: CaptureFile) -> Sequence[str]:
        judged = any(layer.evidence for layer in capture.layers)
        return [note for note in capture.notes if not (judged and note in capture.disagreements)]

    @cached_property
    def configuration(self) -> Configuration | None:
        if self.given is not None or self.config is None:
            return self.given
        from ...diagnosis.configuration import parse_configuration

        try:
            return parse_configuration(read_file(self.config), plain(self.config))
        except FileNotFoundError as error:
            raise InputError("{path}: no such file", path=plain(self.config)) from error


def head_number(text: str) -> int:
    """Return the number of a head; raise UsageError if it is not one."""
    try:
        head = int(text)
    except ValueError:
        head = -1
    if head < 0:
        raise UsageError("--head: must be a whole number from 0 up, not {text!r}", text=text)
    return head


def layer_word(layers: Sequence[Layer], chosen: Layer) -> str:
    """Return the --layer that selects only this layer: its number, or its name if others share the number."""
    for word in (str(chosen.index), chosen.name):
        if [layer for layer in layers if word in (str(layer.index), layer.name)] == [chosen]:
            return word
    raise InputError("Two layers share this name and number; no command can select just one.")


def chosen_heads(capture: CaptureContents, layer: str | None, head: int | None) -> list[Head]:
    """Return the heads with this layer and number, None meaning any; raise CaptureError if there are none."""
    layers = [found for found in capture.layers if layer is None or layer in (str(found.index), found.name)]
    if not layers:
        there = numbers_in_words(found.index for found in capture.layers)
        raise CaptureError(
            "{path}: no layer {layer}; the file has layers {there}",
            path=plain(capture.path),
            layer=plain(layer),
            there=there,
        )
    chosen = [(found, h) for found in layers for h in range(found.heads) if head is None or h == head]
    if not chosen:
        last, path = max(found.heads for found in layers) - 1, plain(capture.path)
        if layer is None:
            raise CaptureError(
                "{path}: no head {head}; its layers have heads 0 to {last}", path=path, head=head, last=last
            )
        raise CaptureError(
            "{path}: no head {head}; layer {layer} has heads 0 to {last}",
            path=path,
            head=head,
            layer=plain(layer),
            last=last,
        )
    return chosen
