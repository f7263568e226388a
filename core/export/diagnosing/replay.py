"""Export what every scale rule would have done to the heads of a capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...message import message
from ..formats import Say, digits, escaped, existing, markdown_table, version
from ..listing.files import files_json
from ..listing.listing import CellType, Listing, whole

if TYPE_CHECKING:
    from ...captures.capture import Capture
    from ...diagnosis.replay import Replay, Replayed

_REPLAY = "attn-tui/replay-1"
_COLUMNS: Mapping[str, CellType] = {
    "file": "string", "layer": "integer", "layer_name": "string", "head": "integer", "rule": "string",
    "multiplier": "number", "divergence": "number", "entropy": "number", "entropy_change": "number",
    "one_hot_rows": "number", "freezing_ratio": "number",
}  # fmt: skip
_FIGURES = [*_COLUMNS][5:]


def replay_listing(captures: Sequence[Capture], asked: int) -> Listing[Replay]:
    """Return how `asked` heads are written."""
    return Listing(
        {"schema": _REPLAY, "version": version(), **files_json(captures)},
        "heads",
        asked,
        lambda each: [_entry(each)],
        _COLUMNS,
        _lines,
    )


def _entry(each: Replay) -> dict[str, Any]:
    return {
        "file": each.layer.path,
        "layer": each.layer.index,
        "layer_name": each.layer.name,
        "head": each.head,
        "replayed": [{"rules": list(found.rules), **_figures(found)} for found in each.replayed],
        "left_out": list(each.left_out),
        "thawed_by": None if each.thawing is None else each.thawing.rules[0],
    }


def _figures(found: Replayed) -> dict[str, Any]:
    return {name: existing(getattr(found, name)) for name in _FIGURES}


def _lines(each: Replay) -> Iterator[list[Any]]:
    """Yield a line for each rule of a head."""
    for found in each.replayed:
        for rule in found.rules:
            yield [each.layer.path, each.layer.index, each.layer.name, each.head, rule, *_figures(found).values()]


def replay_json(capture: Capture, heads: Sequence[Replay]) -> str:
    """Return one JSON object with an entry for each head."""
    return whole(replay_listing([capture], len(heads)), "json", heads)


def replay_csv(heads: Sequence[Replay]) -> str:
    """Return a line for each rule of each head."""
    return whole(replay_listing([], 0), "csv", heads)


def replay_table(heads: Sequence[Replay]) -> tuple[list[str], list[list[str]]]:
    """Return a header and a line for each rule: of one head, or the means over several."""
    if len(heads) == 1:
        header: list[str] = [
            message("rule"), message("multiplier"), "KL", message("entropy"), message("change"),
            message("one-hot %"), message("σ / freezing"),
        ]  # fmt: skip
        return header, [
            [
                " = ".join(found.rules),
                digits(found.multiplier),
                digits(found.divergence),
                digits(found.entropy),
                f"{found.entropy_change:+.3f}",
                f"{100 * found.one_hot_rows:.1f}",
                "—" if found.freezing_ratio is None else digits(found.freezing_ratio),
            ]
            for found in heads[0].replayed
        ]
    from ...diagnosis.replay import average

    return [message("rule"), message("mean KL"), message("entropy change"), message("one-hot %")], [
        [name, digits(divergence), f"{change:+.3f}", f"{100 * one_hot:.1f}"]
        for name, divergence, change, one_hot in average(heads)
    ]


def replay_markdown(heads: Sequence[Replay], say: Say = str) -> str:
    """Return a table with a line for each rule; for each file, after its name, if there are several."""
    return "\n".join(
        (f"{escaped(name, say)}\n\n" if name else "") + markdown_table(*replay_table(own), say)
        for name, own in by_file(heads)
    )


def by_file(heads: Sequence[Replay]) -> list[tuple[str, list[Replay]]]:
    """Return the heads of each file after its name, which is empty if there is one."""
    names = list(dict.fromkeys(each.layer.file for each in heads))
    return [(name if len(names) > 1 else "", [each for each in heads if each.layer.file == name]) for name in names]


def thawing_lines(heads: Sequence[Replay]) -> list[str]:
    """Return a line for each frozen head that some rule makes healthy."""
    return [
        message(
            "{layer} head {head} is frozen; {rule} (× {multiplier}) is the nearest rule that makes it healthy, "
            "KL {divergence} nats",
            layer=each.layer.place,
            head=each.head,
            rule=found.rules[0],
            multiplier=digits(found.multiplier),
            divergence=digits(found.divergence),
        )
        for each in heads
        if (found := each.thawing) is not None
    ]
