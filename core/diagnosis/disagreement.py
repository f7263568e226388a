"""Layers of one kind whose scale, mask or soft-cap differs, without a configuration that explains it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from ..captures.capture import Layer
from ..captures.head import CaptureFile
from ..errors import InputError
from ..message import joined, message
from .configuration import Configuration, configured_scale
from .reading import file_configuration

_MOST = 8  # layers that are named
_CALL = re.compile(r"call \d+")  # what calls of JAX are named


def with_disagreements(capture: CaptureFile, given: Configuration | None = None) -> CaptureFile:
    """Return a capture with a note on each disagreement; without a `given` configuration, the file's is used."""
    try:
        config = file_configuration(capture) if given is None else given
    except InputError:  # the diagnosis reports it
        config = None
    notes, found = (disagreements(capture.layers, config, by_design) for by_design in (True, False))
    return replace(capture, notes=(*capture.notes, *notes, *found), disagreements=tuple(found))


def disagreements(layers: Sequence[Layer], config: Configuration | None = None, by_design: bool = False) -> list[str]:
    """Return a sentence for each of scale, mask and soft-cap in which layers of a file differ, by design or not.

    Only layers of the same kind are compared: those whose names differ in numbers alone. A pattern that repeats, as
    a window in every second layer, is a design; so may be what differs between calls that have no module's name.
    """
    kinds: dict[tuple[str, str], list[Layer]] = {}
    for layer in layers:
        kinds.setdefault((layer.file, layer.kind), []).append(layer)
    notes: list[str] = []
    for alike in kinds.values():
        if len(alike) > 1:
            differing = (
                _scales(alike, config),
                _masks(alike, config),
                _Differing(alike, lambda layer: layer.softcap, _softcap_words),
            )
            notes += [trait.words for trait in differing if trait.words and trait.is_by_design == by_design]
    return notes


def scale_disagreement(layers: Sequence[Layer], config: Configuration | None = None) -> str:
    """Return how the multipliers of layers differ: `layer 1 is × 0.0625, the others × 0.25`; empty if they do not.

    They may differ as the configuration says, or as 1/√d_k does.
    """
    return _scales(layers, config).words


def _scales(layers: Sequence[Layer], config: Configuration | None) -> _Differing:
    known = [layer for layer in layers if layer.applied is not None]
    if config is not None and len({_ratio(layer, configured_scale(config, layer.index, layer.d_k).start)
                                   for layer in known}) == 1:  # fmt: skip
        known = []
    if len({_ratio(layer, layer.d_k**-0.5) for layer in known}) == 1:
        known = []
    return _Differing(known, lambda layer: _ratio(layer, 1.0), _scale_words)


def _scale_words(layer: Layer) -> str:
    return message("× {whole:.4g}", whole=layer.applied or math.nan)


def _ratio(layer: Layer, expected: float) -> str:
    return f"{(layer.applied or math.nan) / expected:.3g}"


def _masks(layers: Sequence[Layer], config: Configuration | None) -> _Differing:
    """Return how the kinds of masks differ; layer types or a configured window explain windows and chunks."""
    explained = config is not None and (len(set(config.layer_types)) > 1 or config.window is not None)

    def kind(layer: Layer) -> Hashable:
        return (layer.causal is not None, *(() if explained else (layer.window, layer.chunk)))

    windows = not explained and any(layer.window is not None for layer in layers)
    return _Differing(layers, kind, lambda layer: mask_words(layer, windows))


def mask_words(layer: Layer, windows: bool) -> str:
    """Return `causal, no window`; windows are told if some layers have one."""
    aligned = {None: "not causal", "top_left": "causal, top-left", "bottom_right": "causal, bottom-right"}
    words = ["causal" if layer.causal is not None and layer.queries == layer.keys else aligned[layer.causal]]
    if layer.window is not None and layer.causal is not None and layer.window[0] is not None:
        words.append(message("window of {before} keys", before=layer.window[0] + 1))
    elif layer.window is not None:
        before, after = (message("all") if side is None else str(side) for side in layer.window)
        words.append(message("window {before} before, {after} after", before=before, after=after))
    elif windows:
        words.append(message("no window"))
    if layer.chunk is not None:
        words.append(message("chunks of {chunk} keys", chunk=layer.chunk))
    return joined(words, ", ")


def _softcap_words(layer: Layer) -> str:
    if layer.softcap is None:
        return message("without soft-cap")
    return message("capped at {softcap:g}", softcap=layer.softcap)


@dataclass(frozen=True)
class _Differing:
    """A property of layers of one kind, and its words."""

    layers: Sequence[Layer]
    key: Callable[[Layer], Hashable]
    say: Callable[[Layer], str]

    @property
    def words(self) -> str:
        """`layer 1 is …, the others …`, or what there is if no value is that of most layers; empty if all agree."""
        layers, key = self.layers, self.key
        counts = Counter(map(key, layers))
        if len(counts) < 2:
            return ""
        usual, most = counts.most_common(1)[0]
        first = {value: self.say(next(layer for layer in layers if key(layer) == value)) for value in counts}
        if len(counts) > 3 or 2 * most <= len(layers):
            some = [*first.values()][:_MOST]
            if len(counts) > _MOST:
                return message("layers differ: {values}, …", values=joined(some, ", "))
            if len(counts) > 2:
                return message("layers differ: {values}", values=joined(some, ", "))
        parts: list[str] = []
        for value in counts:
            if value != usual:
                indices = [layer.index for layer in layers if key(layer) == value]
                numbers = ", ".join(map(str, indices[:_MOST])) + (", …" if len(indices) > _MOST else "")
                parts.append(
                    message("layer {number} is {words}", number=numbers, words=first[value])
                    if len(indices) == 1
                    else message("layers {numbers} are {words}", numbers=numbers, words=first[value])
                )
        return message("{parts}, the others {usual}", parts=joined(parts, ", "), usual=first[usual])

    @property
    def is_by_design(self) -> bool:
        """Whether it repeats every n layers, at least twice, or the layers are calls without a module's name."""
        values = [*map(self.key, self.layers)]
        repeats = any(values[number:] == values[:-number] for number in range(2, len(values) // 2 + 1))
        return repeats or all(_CALL.fullmatch(layer.name) for layer in self.layers)
