"""Captured heads in the library: a file, a folder or arrays, and the heads in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, SupportsFloat, TypeAlias, cast, overload

from ..arrays import FloatArray
from ..captures.calls.call import Call, opened_calls
from ..captures.capture import HeadSubject, Layer, Meaning, capture_path
from ..captures.head import CaptureFile, read_head
from ..captures.heads import measure_head
from ..captures.reader import open_capture
from ..captures.rules import Rule, computation, file_rule, named_rule
from ..diagnosis.check import HeadFigures
from ..diagnosis.check import measure as head_figures
from ..diagnosis.comparing.compare import compare_heads
from ..diagnosis.comparing.results import HeadComparison, HeadPair
from ..diagnosis.groups import numbers_in_words
from ..diagnosis.reading import file_configuration
from ..diagnosis.replay import replay
from ..diagnosis.results import Replay, RuleReplay
from ..errors import InputError
from ..questions.captures.diagnose import DiagnoseCaptures
from ..statistics.measurement import Estimate, Measurement
from ..tables.heads import inspect_table, replay_table
from ..tables.table import Table
from .result import SHOWN, FilePath, Result, own_number
from .verdicts import Diagnosis


@dataclass(frozen=True, eq=False, repr=False)
class HeadMeasurement(Result):
    """The statistics of one head under one scale."""

    capture: CaptureFile
    measurement: Measurement[HeadSubject]

    @property
    def measured(self) -> Mapping[str, Estimate]:
        """The statistics by name: value and standard error over texts."""
        return self.measurement.columns[0].measured

    def table(self) -> Table[Any]:
        return inspect_table([self.capture], [(self.measurement, None)], 1)

    def __repr__(self) -> str:
        known = [(name, self.measured[name].value) for name in SHOWN]
        values = ", ".join(f"{name} {value:.4g}" for name, value in known if value is not None)
        return f"<× {self.measurement.columns[0].multiplier:.4g}: {values}>"


@dataclass(frozen=True, eq=False, repr=False)
class HeadReplay(Result):
    """One head under every scale rule, the file's own first."""

    capture: CaptureFile
    replay: Replay

    @property
    def rules(self) -> Sequence[RuleReplay]:
        """What each rule would have done, rules of the same weights together."""
        return self.replay.replayed

    @property
    def remedy(self) -> RuleReplay | None:
        """The rule of least divergence that makes a saturated head healthy; None if none does or it is not."""
        return self.replay.remedy

    def table(self) -> Table[Any]:
        return replay_table([self.capture], [self.replay], 1)

    def __repr__(self) -> str:
        remedy = "none" if self.remedy is None else ", ".join(self.remedy.rules)
        return f"<{self.replay.layer.place} head {self.replay.head} under {len(self.rules)} rules; remedy: {remedy}>"


@dataclass(frozen=True, eq=False, repr=False)
class Head:
    """One head of a capture."""

    file: CaptureFile
    layer: Layer
    head: int

    def measure(self, scale: str | SupportsFloat | None = None) -> HeadMeasurement:
        """Return its statistics, as `attn-tui inspect` does.

        `scale` is a rule, a number or a formula; by default it is the scale of the file.
        """
        return HeadMeasurement(self.file, measure_head(self.file, self.layer, self.head, [self._rule(scale)]))

    def weights(self, scale: str | SupportsFloat | None = None) -> FloatArray:
        """Return the attention weights, (batch, queries, keys); `scale` is as for `measure`."""
        data = read_head(self.file, self.layer, self.head)
        return computation(self._rule(scale), self.layer, data).evaluate(data.q, data.k).softmax.weights

    def diagnose(self, expect: str | SupportsFloat | None = None) -> Diagnosis:
        """Return which multiplier was used, and what else was done to the head."""
        question = DiagnoseCaptures(
            paths=(self.file.path,), opened=(self.file,), expect=own_number(expect), only=(self.layer, self.head)
        )
        return Diagnosis(self.file, question.answer())

    def figures(self) -> HeadFigures:
        """Return the figures that the limits of `check` apply to."""
        config = file_configuration(self.file)
        *_, (_, figures) = head_figures(self.file, self.layer, self.head, config, None)
        assert figures is not None
        return figures

    def compare(self, test: Head) -> HeadComparison:
        """Return the stages of this head, the reference, and of another one, and where they differ."""
        return compare_heads(self.file, test.file, HeadPair(self.layer, self.head, test.layer, test.head))

    def replay(self) -> HeadReplay:
        """Return what every scale rule would have done to it."""
        return HeadReplay(self.file, replay(self.file, self.layer, self.head))

    def _rule(self, scale: str | SupportsFloat | None) -> Rule:
        if scale is None:
            return file_rule(self.layer)
        scale = own_number(scale)
        return named_rule(scale if isinstance(scale, str) else repr(scale), self.layer)

    def __repr__(self) -> str:
        layer = self.layer
        return f"<{layer.place} head {self.head}: {layer.queries} × {layer.keys}, d_k {layer.d_k}>"


@dataclass(frozen=True, eq=False, repr=False)
class Capture:
    """Captured heads: `capture[layer]` are those of a layer, and `capture[layer, head]` is one of them.

    A layer is its number in the model, its name or whole parts of it, such as "layers.0"; -1 is the last. If several
    layers have this number or this name, that is a KeyError. Iterating yields all heads.
    """

    file: CaptureFile

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers, in order of their number, with sizes and metadata."""
        return self.file.layers

    @property
    def notes(self) -> Sequence[str]:
        """Everything that was assumed."""
        return self.file.notes

    @overload
    def __getitem__(self, place: int | str) -> Sequence[Head]: ...
    @overload
    def __getitem__(self, place: tuple[int | str, int]) -> Head: ...
    def __getitem__(self, place: int | str | tuple[int | str, int]) -> Head | Sequence[Head]:
        if not isinstance(place, tuple):
            return self._heads(place)
        heads = self._heads(place[0])
        if not -len(heads) <= place[1] < len(heads):
            raise KeyError(f"no layer {place[0]} with a head {place[1]}: its heads are 0 to {len(heads) - 1}")
        return heads[place[1]]

    def _heads(self, at: int | str) -> Sequence[Head]:
        layers = [layer for layer in self.layers if at in (layer.index, layer.name)]
        if isinstance(at, str):
            layers = layers or [layer for layer in self.layers if f".{at}." in f".{layer.name}."]
        elif -len(self.layers) <= at < 0:
            layers = [self.layers[at]]
        if len(layers) > 1:
            other = layers[0].index if at == layers[0].name else layers[0].name
            raise KeyError(f"{len(layers)} layers are {at!r}: ask for one as {other!r}, or iterate over the capture")
        if not layers:
            there = numbers_in_words(layer.index for layer in self.layers)
            raise KeyError(f"no layer {at}: there are layers {there}, such as {self.layers[0].name!r}")
        return [Head(self.file, layers[0], head) for head in range(layers[0].heads)]

    def __iter__(self) -> Iterator[Head]:
        return (Head(self.file, layer, head) for layer in self.layers for head in range(layer.heads))

    def __len__(self) -> int:
        return sum(layer.heads for layer in self.layers)

    def __repr__(self) -> str:
        return repr(self.file)


def open(
    source: Source, *, axes: str | None = None, mask_true: Meaning | None = None, tensor: str | None = None
) -> Capture:
    """Open captured heads, as `attn-tui inspect` does; raise InputError if they cannot be read.

    `source` is a file, a folder, "example:right" or another example, or calls of attention as `attn_tui.call` returns
    them. Of a file, `axes` names the
    axes of q and k, such as "batch,token,head,d_k"; `mask_true` says what True means in a mask; `tensor` names the
    tensors themselves, such as "q=h.*.foo,k=h.*.bar".
    """
    if isinstance(source, (str, PathLike)):
        return Capture(open_capture(capture_path(source), axes, mask_true, tensor))
    return Capture(file_of(source))


def file_of(source: Source) -> CaptureFile:
    """Return what a source contains; raise InputError if it cannot be read."""
    if isinstance(source, Capture):
        return source.file
    if isinstance(source, (str, PathLike)):
        return open_capture(capture_path(source))
    calls: list[object] = [source] if isinstance(source, Call) else [*cast("Iterable[object]", source)]
    if not (calls and all(isinstance(call, Call) for call in calls)):
        given = type(source).__name__
        raise InputError("must be a file, a folder, a capture or calls of attn_tui.call, not {given}", given=given)
    return opened_calls(cast("list[Call]", calls))


Source: TypeAlias = FilePath | Capture | Call | Sequence[Call]
