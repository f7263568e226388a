"""What the columns A and B of a captured head are, and how keys and lists change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ....core.captures.capture import Layer
from ....core.captures.settings import (
    AS_IN_FILE,
    FILE,
    HEAD_FIELD,
    HEAD_FIELDS,
    HeadSetting,
    against_with,
    changes_of_a,
    setting_of_a,
)
from ....core.field import differing, next_of
from ....core.scales import SCALE_RULES
from ....core.setting_text import text_of, with_rule

_RULES = (FILE, *(name for name in SCALE_RULES if name != "custom"))


@dataclass(frozen=True)
class Sides:
    """The settings of A and B; raise ParameterError if they contradict themselves."""

    against: str = "none"  # in what A differs from B
    b: HeadSetting = AS_IN_FILE

    def __post_init__(self) -> None:
        setting_of_a(self.b, self.against)  # or raise

    @property
    def a(self) -> HeadSetting:
        """The setting of A."""
        return setting_of_a(self.b, self.against)

    @property
    def of_file(self) -> bool:
        """Whether A or B has the file's scale."""
        return FILE in (self.a.scale, self.b.scale)

    def cap(self, layer: Layer) -> float | None:
        """Return the soft-cap that A and B share, if there is one."""
        caps = {side.cap(layer.softcap) for side in (self.a, self.b)}
        return caps.pop() if len(caps) == 1 else None

    def with_next_rule(self, side: Literal["A", "B"]) -> Sides:
        """Return the sides with another scale rule, the file's own before the first; after a formula, an end."""
        if side == "B":
            return replace(self, b=replace(self.b, scale=next_of(_RULES, self.b.scale)))
        rule = next_of(_RULES, self.a.scale)
        changes = with_rule(changes_of_a(self.against), rule)
        return replace(self, against=text_of(changes, [*HEAD_FIELD.values()]))

    def with_next_format(self) -> Sides:
        """Return the sides with another number format of B; A follows unless it names its format."""
        return self.with_choice("B", f"precision={HEAD_FIELD['precision'].stepped(self.b.precision, 1)}")

    def with_choice(self, side: str, choice: str) -> Sides:
        """Return the sides with a rule or `name=value` from a list."""
        if side == "A":
            return replace(self, against=against_with(self.b, self.against, choice))
        name, equals, text = choice.partition("=")
        new = {name: HEAD_FIELD[name].parse(text)} if equals else {"scale": choice}
        return replace(self, b=self.b.with_values(new))

    @property
    def chosen(self) -> tuple[str, ...]:
        """What A and B are, as the values of a list."""
        return tuple(
            f"{side} {text}"
            for side, each in (("A", self.a), ("B", self.b))
            for text in (each.scale, *(f"{name}={HEAD_FIELD[name].format(getattr(each, name))}" for name in LISTED))
        )

    @property
    def options(self) -> Mapping[str, Any]:
        """The texts of the command's options that are not as usual, by their names."""
        b, texts = self.b, dict[str, Any]()
        if b.scale != FILE:
            texts["scale"] = HEAD_FIELD["multiplier"].format(b.multiplier) if b.scale == "custom" else b.scale
        for name, value in differing(HEAD_FIELDS[2:], b, AS_IN_FILE).items():
            texts[name] = HEAD_FIELD[name].format(value)
        if self.against != ("none" if b.scale == FILE else FILE):
            texts["against"] = self.against
        return texts


LISTED = ("precision", "arithmetic", "softcap")  # what lists offer beside the scale rule
