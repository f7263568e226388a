"""Orders of the list of heads, and what can be looked for."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from ....core.diagnosis.comparing.results import STAGES, Comparison, heads_in_words, in_words_of_baseline
from ....core.diagnosis.heads.reasons import severity
from ....core.errors import InputError
from ....core.message import message
from .row import token

if TYPE_CHECKING:
    from ....core.captures.capture import Layer
    from .widget import HeadMapWidget

Order: TypeAlias = Literal["worst", "largest", "smallest", "layer"]
ORDERS: tuple[Order, ...] = ("worst", "largest", "smallest", "layer")


def ranked(heads: HeadMapWidget, order: Order) -> list[tuple[int, int]]:
    """Return the heads known so far in an order, by (position of the layer, head)."""
    places = sorted(heads.measured)
    if order == "layer":
        return places
    if order == "worst":
        return sorted(places, key=lambda place: severity(heads.measured[place], heads.verdicts.get(place)))
    sign = -1 if order == "largest" else 1

    def key(place: tuple[int, int]) -> tuple[bool, float]:
        value = heads.value(place)
        known = value is not None and math.isfinite(value)
        return not known, sign * value if known and value is not None else 0.0

    return sorted(places, key=key)


def find(
    text: str, layers: Sequence[Layer], layer: Layer, tokens: Sequence[str] | None, query: int
) -> tuple[int, int] | int | str:
    """Return the (position, head) of a head such as `18/7`, the next query with a token, or why there is none.

    A number is a query; other texts are looked for in the tokens of the text, after `query`, ignoring case.
    """
    if match := re.fullmatch(r"(\d+)\s*/\s*(\d+)", text):
        index, head = map(int, match.groups())
        position = next((each.position for each in layers if each.index == index), None)
        if position is None:
            return message(
                "no layer {index}; the file has layers {first} to {last}",
                index=index,
                first=layers[0].index,
                last=layers[-1].index,
            )
        if head >= layers[position].heads:
            return message(
                "no head {head}; layer {index} has heads 0 to {last}",
                head=head,
                index=index,
                last=layers[position].heads - 1,
            )
        return position, head
    if text.isascii() and text.isdigit():
        return (
            int(text)
            if int(text) < layer.queries
            else message("no query {query}; the last one is {last}", query=text, last=layer.queries - 1)
        )
    if tokens is None:
        return message("the file has no tokens; a head is 3/7, a query 12")
    if layer.rows is not None:
        return message("the file has some queries only; give the number of one")
    shift = layer.keys - layer.queries if layer.causal == "bottom_right" else 0
    order = [*range(query + 1, layer.queries), *range(min(query + 1, layer.queries))]
    wanted = text.casefold()
    found = next((each for each in order if wanted in token(tokens, each + shift).casefold()), None)
    return message("no token contains {text}", text=text) if found is None else found


def layer_word(layers: Sequence[Layer], position: int) -> str:
    """Return the --layer that selects only this layer: its number, or its name if others share the number."""
    chosen = layers[position]
    for word in (str(chosen.index), chosen.name):
        if [layer for layer in layers if word in (str(layer.index), layer.name)] == [chosen]:
            return word
    raise InputError("Two layers share this name and number; no command can select just one.")


def change_words(comparison: Comparison, name: str) -> list[str]:
    """Return the first stage that differs from a baseline, and where, in forms of which each is shorter."""
    if comparison.first is None:
        found = comparison.missing[0] if comparison.missing else message("nothing differs")
        return [message("against {name}: {found}", name=name, found=in_words_of_baseline(found))]
    stage, heads = comparison.first
    count = sum(each.first is not None for each in comparison.heads)
    place = message(
        "layer {index}, {heads}",
        index=heads[0].test_layer.index,
        heads=heads_in_words([each.test_head for each in heads]),
    )
    share = message("{differing} of {heads} heads differ", differing=count, heads=len(comparison.heads))
    first = message("{stage} differs first, {place}", stage=STAGES[stage.name], place=place)
    forms = [
        message("against {name}: {first}; {share}: {says}", name=name, first=first, share=share, says=stage.says),
        message("{first}: {says}", first=first, says=stage.says),
        message("against {name}: {first}; {share}", name=name, first=first, share=share),
        message("{first}; {share}", first=first, share=share),
        first,
    ]
    return [*map(in_words_of_baseline, forms)]
