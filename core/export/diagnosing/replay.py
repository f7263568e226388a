"""Export what every scale rule would have done to the heads of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..formats import Say, csv_text, digits, existing, json_text, markdown_table, version

if TYPE_CHECKING:
    from ...captures.capture import Capture
    from ...diagnosis.replay import Replay, Replayed

_REPLAY = "attn-tui/replay-1"
_COLUMNS = (
    "layer", "layer_name", "head", "rule", "multiplier", "divergence", "entropy", "entropy_change", "one_hot_rows",
    "freezing_ratio",
)  # fmt: skip


def replay_json(capture: Capture, heads: Sequence[Replay]) -> str:
    """Return one JSON object with an entry for each head."""
    return json_text(
        {
            "schema": _REPLAY,
            "version": version(),
            "file": {"path": str(capture.path), "model": capture.model},
            "heads": [
                {
                    "layer": each.layer.index,
                    "layer_name": each.layer.name,
                    "head": each.head,
                    "replayed": [{"rules": list(found.rules), **_figures(found)} for found in each.replayed],
                    "left_out": list(each.left_out),
                    "thawed_by": None if each.thawing is None else each.thawing.rules[0],
                }
                for each in heads
            ],
        }
    )


def _figures(found: Replayed) -> dict[str, Any]:
    names = _COLUMNS[4:]
    return {name: existing(getattr(found, name)) for name in names}


def replay_csv(heads: Sequence[Replay]) -> str:
    """Return a line for each rule of each head."""
    lines: list[list[Any]] = []
    for each in heads:
        place = [each.layer.index, each.layer.name, each.head]
        for found in each.replayed:
            lines += [[*place, rule, *_figures(found).values()] for rule in found.rules]
    return csv_text(_COLUMNS, lines)


def replay_table(heads: Sequence[Replay]) -> tuple[list[str], list[list[str]]]:
    """Return a header and a line for each rule: of one head, or the means over several."""
    if len(heads) == 1:
        header = ["rule", "multiplier", "KL", "entropy", "change", "one-hot %", "σ / freezing"]
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

    return ["rule", "mean KL", "entropy change", "one-hot %"], [
        [name, digits(divergence), f"{change:+.3f}", f"{100 * one_hot:.1f}"]
        for name, divergence, change, one_hot in average(heads)
    ]


def replay_markdown(heads: Sequence[Replay], say: Say = str) -> str:
    """Return a table with a line for each rule."""
    return markdown_table(*replay_table(heads), say)


def thawing_lines(heads: Sequence[Replay]) -> list[str]:
    """Return a line for each frozen head that some rule makes healthy."""
    return [
        f"{each.layer.place} head {each.head} is frozen; {found.rules[0]} (× {digits(found.multiplier)}) is "
        f"the nearest rule that makes it healthy, KL {digits(found.divergence)} nats"
        for each in heads
        if (found := each.thawing) is not None
    ]
