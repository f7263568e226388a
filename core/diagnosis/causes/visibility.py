"""The keys that queries may really have seen: variants of the mask that a file describes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...arrays import BoolArray
from ...message import message
from ..subject import Indices, Subject, places


@dataclass(frozen=True, eq=False)
class Variant:
    """A mask [texts, rows, keys] that attention may have used instead; None: every key is visible."""

    cause: str
    words: str
    seen: BoolArray | None


def variants(subject: Subject) -> Iterator[Variant]:
    """Yield the masks that differ from the file's, each once."""
    texts, rows, keys = subject.scores.shape
    everything = np.ones((texts, rows, keys), np.bool_)
    seen = everything if subject.seen is None else subject.seen
    present = np.ones((texts, keys), np.bool_) if subject.present is None else subject.present
    tokens = np.broadcast_to(present[:, np.newaxis], seen.shape)
    place, own = places(keys), subject.positions[:, np.newaxis]
    future = place > own
    causal = not bool((seen & future).any()) and bool((tokens & future).any())
    found: list[tuple[str, str, BoolArray]] = []
    if causal:
        found.append(("causal-lost", "queries see later keys, as without a causal mask", seen | (tokens & future)))
        near = tokens & future & (place <= own + 1)
        found.append(("future-key", "each query sees one key of the future", seen | near))
        others = seen & (place != own)
        found.append(("own-key-hidden", "no query sees its own key", others))
        if subject.facts.sink is not None:  # else rows without keys say nothing
            first = seen & ~others.any(axis=-1, keepdims=True)
            found.append(("own-key-hidden", "no query sees its own key but the first", others | first))
        if subject.shift:
            for shift, words in ((-subject.shift, "top-left"), (subject.shift, "bottom-right")):
                moved = tokens & (place <= own + shift) & _window(subject, own + shift, place)
                found.append(("causal-shifted", message("the causal mask is aligned {words}", words=words), moved))
    else:
        found.append(("causal-extra", "no query sees later keys, as with a causal mask", seen & ~future))
        found.append(("own-key-hidden", "no query sees its own key", seen & (place != own)))
    past = tokens & ~future if causal else tokens
    found.append(("window-ignored", "queries see keys outside the window", past))
    padded = everything & ~future if causal else everything
    if subject.facts.window is not None:
        padded = padded & _window(subject, own, place)
    found.append(("padding-attended", "padding is attended to", seen | (padded & ~tokens)))
    found.append(("causal-lost", "neither the causal mask nor padding is applied", everything))
    window = subject.facts.window
    if window is not None:
        for other in (window - 1, window + 1):
            reach = _reach(other, own, place, causal)
            found.append(
                (
                    "window-ignored",
                    message("the window has {other} keys, not {window}", other=other, window=window),
                    past & reach,
                )
            )
    known = [seen]
    for cause, words, mask in found:
        if mask[subject.used].any(axis=-1).all() or cause == "own-key-hidden":
            mask = mask & (subject.used[..., np.newaxis])
            if not any(np.array_equal(mask, each) for each in known):
                known.append(mask)
                yield Variant(cause, words, None if mask.all() else mask)


def _window(subject: Subject, own: Indices, place: Indices) -> BoolArray:
    window = subject.facts.window
    if window is None:
        return np.ones((1, 1), np.bool_)
    return _reach(window, own, place, True)


def _reach(window: int, own: Indices, place: Indices, causal: bool) -> BoolArray:
    near = place > own - window
    return near if causal else near & (place < own + window)
