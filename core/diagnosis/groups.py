"""One line for one fault, whatever the number of heads. This module does not need NumPy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ..captures.capture import Layer
from ..message import Message, counted, joined, message
from .results import Consequence, Product, StageName, Verdict, amount, is_of_scale

Place: TypeAlias = "tuple[Layer, int]"  # a head

# What is wrong, by the stage at which a cause acts.
WRONG: dict[StageName, str] = {
    "qk": message("WRONG SCORES"),
    "multiplier": message("WRONG SCALE"),
    "softcap": message("WRONG SOFT-CAP"),
    "bias": message("WRONG BIAS"),
    "mask": message("WRONG MASK"),
    "sink": message("WRONG SINK"),
    "lse": message("WRONG LSE"),
    "weights": message("WRONG WEIGHTS"),
    "v": message("WRONG VALUES"),
    "o": message("WRONG OUTPUT"),
}
_CALLED = {
    "healthy": message("RIGHT SCALE"),
    "unexplained": message("UNEXPLAINED"),
    "undecided": message("UNDECIDED"),
    "no-evidence": message("NOT JUDGED"),
}
_ALIKE = 5.0  # standard errors by which two fitted multipliers are two
_ROUNDING = 1e-3  # relative: what is the same at four digits
_LISTED = 6  # layers and heads that are named


@dataclass(frozen=True)
class Fault:
    """What is said of one head, or of a whole file: its verdict, a cause, or a figure beyond a limit."""

    label: str  # what is wrong: WRONG SCALE
    rule: str  # the cause, the limit or the verdict
    why: str
    layer: Layer | None = None  # None: of the file
    head: int = 0
    used: Product | None = None  # what q·k was multiplied by
    error: float = 0.0
    expected: str = ""  # what it should be, in words: should be × 0.1768 = 1/√32
    also: tuple[str, ...] = ()
    severe: bool = True  # whether it is wrong, and not only undecided
    consequence: Consequence | None = None  # what all that was done to the head does to its rows
    file: str = ""  # the name of its file, if there are several
    degree: float = 0.0  # how far a limit is passed; a group names the head that passes it most


@dataclass(frozen=True)
class FaultGroup:
    """All heads of a file with one fault, in the order of layers."""

    fault: Fault  # that of the first head, or of the one that passes a limit most; its `also` explains all of them
    heads: tuple[Place, ...]
    used: tuple[Product, Product] | None  # the least and the largest; the same one twice if they are alike
    same_words: bool = field(default=True)  # whether the fault's words are those of every head

    @property
    def rule(self) -> str:
        """The cause, the limit or the verdict."""
        return self.fault.rule

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of its heads."""
        return tuple(dict.fromkeys(layer for layer, _ in self.heads))

    @property
    def layer_numbers(self) -> str:
        """The numbers of its layers: `0–5`, after the file if there are several."""
        numbers = numbers_in_words(layer.index for layer in self.layers)
        file = self.layers[0].file
        return message("{file}: {numbers}", file=file, numbers=numbers) if file else numbers

    @property
    def head_numbers(self) -> str:
        """The numbers of its heads, in each of its layers: `0–7`."""
        return numbers_in_words(head for _, head in self.heads)

    @property
    def modules(self) -> str:
        """The names of its modules, with * where they differ in a number; empty if they have none."""
        return _modules(self.layers)

    @property
    def short_place(self) -> str:
        """Where it is, without the names of modules."""
        return joined([_layers_in_words(self.layers), _heads_in_words(self.heads)], ", ")

    @property
    def place(self) -> str:
        """Where it is: `layers 0–5, all 18 heads (blocks.*.attn)`."""
        if not self.heads:
            return self.fault.file or message("file")
        return place_in_words(self.heads)

    @property
    def runs(self) -> list[FaultGroup]:
        """Its layers that follow each other and have the same heads of it, each run as a group."""
        of: dict[Layer, list[int]] = {}
        for layer, head in sorted(self.heads, key=lambda place: (place[0].position, place[1])):
            of.setdefault(layer, []).append(head)
        runs: list[list[Layer]] = []
        for layer in of:
            last = runs[-1][-1] if runs else None
            if last is not None and layer.position == last.position + 1 and of[layer] == of[last]:
                runs[-1].append(layer)
            else:
                runs.append([layer])
        return [replace(self, heads=tuple((each, head) for each in run for head in of[each])) for run in runs]

    @property
    def amounts(self) -> str:
        """What q·k was multiplied by: `× 0.03125`, or a range if heads differ by more than their errors."""
        if self.used is None:
            return ""
        least, most = self.used
        if least == most:
            return amount(least)
        return message("× {least:.4g} to {most:.4g}", least=least, most=most)

    @property
    def why(self) -> str:
        """Why it is so, in words that are true of all heads, or of the one that is named."""
        if self.same_words or not self.heads:
            return self.fault.why
        layer, head = self.heads[0]
        template = "{why} (layer {layer} head {head})"
        return message(template, why=self.fault.why, layer=layer.index, head=head)

    @property
    def effect(self) -> str:
        """What it does to the rows of the first head: entropy, largest weight, KL; empty if that is not known."""
        effect = self.fault.consequence
        if effect is None:
            return ""
        words = (
            "entropy {entropy:.4g} nats instead of {expected:.4g}, largest weight {most:.0f} % instead of "
            "{expected_most:.0f} %, KL {divergence:.2g} nats, another largest key in {changed:.0f} % of rows"
        )
        said = message(
            words,
            entropy=effect.entropy,
            expected=effect.expected_entropy,
            most=100 * effect.max_weight,
            expected_most=100 * effect.expected_max_weight,
            divergence=effect.divergence,
            changed=100 * effect.changed_rows,
        )
        return said if len(self.heads) < 2 else message("{effect} (head {head})", effect=said, head=self.fault.head)

    @property
    def said(self) -> str:
        """What it is, what it should be, and why."""
        used = self.amounts if self.rule != "healthy" else ""
        numbers = joined([text for text in (used, self.fault.expected) if text], ", ")
        return joined([text for text in (numbers, self.why) if text], ": ")

    @property
    def sentence(self) -> str:
        """All of it on one line: where, what it is, what it should be, and why."""
        return joined([text for text in (self.place, self.said) if text], ": ")

    @property
    def names(self) -> str:
        """The cause, and others that explain as much: `scale-twice, or scale-1-over-d`."""
        if not self.fault.also:
            return self.fault.rule
        return message("{cause}, or {also}", cause=self.fault.rule, also=joined(self.fault.also, ", "))


@dataclass(frozen=True)
class HeadVerdict:
    """The verdict on one head."""

    layer: Layer
    head: int
    verdict: Verdict

    @property
    def place(self) -> str:
        """The layer and the head, for people."""
        return self.layer.place_of(self.head)


def should_be(verdict: Verdict) -> str:
    """Return `should be × 0.1768 = 1/√32`; of an assumption, what that is; empty if it is not known."""
    expected = verdict.expected.says
    if not expected:
        return ""
    if verdict.is_unusual:
        return message("where {expected} is usual", expected=expected)
    return message("should be {expected}", expected=expected)


def faults_of(head: HeadVerdict) -> list[Fault]:
    """Return what is said of a head: each cause, or its verdict if it has none."""
    verdict = head.verdict
    at = Fault("", "", "", head.layer, head.head, verdict.multiplier, verdict.multiplier_error or 0.0)
    at = replace(at, consequence=verdict.consequence)
    if verdict.findings:
        return [
            replace(
                at,
                label=message("NOT FINITE") if one.cause == "not-finite" else WRONG[one.stage],
                rule=one.cause,
                why=one.says,
                also=one.also,
                used=verdict.multiplier if is_of_scale(one) else None,
                expected=should_be(verdict) if is_of_scale(one) else "",
            )
            for one in verdict.findings
        ]
    if (suspect := verdict.suspect) is not None:
        return [
            replace(
                at,
                label=message("UNUSUAL SCALE"),
                rule=suspect.cause,
                why=suspect.says,
                also=suspect.also,
                expected=should_be(verdict),
                severe=False,
            )
        ]
    healthy = verdict.word == "healthy"
    at = replace(at, label=_CALLED.get(verdict.word, ""), rule=verdict.word, severe=verdict.is_wrong)
    if healthy:
        return [replace(at, why=message("as expected"), expected=verdict.expected.says)]
    return [replace(at, why=verdict.says, used=None, also=verdict.maybe)]


def groups(faults: Iterable[Fault]) -> list[FaultGroup]:
    """Return faults, those that are one together, in the order of their first heads.

    Of several causes that explain as much, a group has the one that explains most of its heads.
    """
    buckets: dict[tuple[object, ...], list[Fault]] = {}
    for fault in faults:
        file = None if fault.layer is None else fault.layer.file
        number = f"{fault.used:.3g}" if fault.used is not None and fault.expected else ""
        cause = "" if number else (fault.rule, fault.why if fault.layer is None else _template(fault.why))
        buckets.setdefault((file, fault.label, fault.expected, number, cause), []).append(fault)
    merged: dict[tuple[object, ...], list[Fault]] = {}
    for key, bucket in buckets.items():
        why = key[4] or (_commonest(bucket), _template(bucket[0].why))
        merged.setdefault((*key[:3], why), []).extend(bucket)
    found_groups = [_group(bucket) for bucket in merged.values()]
    return sorted(found_groups, key=lambda group: group.layers[0].position if group.heads else 1 << 30)


def _template(words: str) -> str:
    return words.template if isinstance(words, Message) else words


def _commonest(bucket: Sequence[Fault]) -> str:
    """Return the cause that explains most heads; of those, the one that is named first most often."""
    explains = Counter(name for fault in bucket for name in (fault.rule, *fault.also))
    first = Counter(fault.rule for fault in bucket)
    return max(explains, key=lambda name: (explains[name], first[name]))


def _group(bucket: Sequence[Fault]) -> FaultGroup:
    rule = _commonest(bucket)
    shown = max((fault for fault in bucket if fault.rule == rule), key=lambda fault: fault.degree, default=bucket[0])
    causes = [{fault.rule, *fault.also} for fault in bucket]
    also = tuple(name for name in shown.also if all(name in names for names in causes))
    whys = {fault.why for fault in bucket if fault.rule == shown.rule}
    heads = {(fault.layer, fault.head): None for fault in bucket if fault.layer is not None}
    ordered = sorted(heads, key=lambda place: (place[0].position, place[1]))
    if len(whys) > 1 and shown.layer is not None:  # the words are of the head that is named
        ordered.insert(0, ordered.pop(ordered.index((shown.layer, shown.head))))
    return FaultGroup(replace(shown, also=also), tuple(ordered), _range(bucket), len(whys) == 1)


def _range(bucket: Sequence[Fault]) -> tuple[Product, Product] | None:
    """Return the least and the largest multiplier; the same one twice if errors explain the difference."""
    known = sorted((fault for fault in bucket if fault.used is not None), key=lambda each: each.used or 0.0)
    if not known:
        return None
    low, high = known[0], known[-1]
    assert low.used is not None
    assert high.used is not None
    allowed = max(_ALIKE * (low.error + high.error), _ROUNDING * abs(high.used))
    middle = known[len(known) // 2].used
    assert middle is not None
    return (middle, middle) if high.used - low.used <= allowed else (low.used, high.used)


def right_layers(heads: Iterable[HeadVerdict], group: FaultGroup) -> str:
    """Return which other layers of a file are right: `layers 0, 1 and 3 are right`; empty if none is."""
    if not group.heads:
        return ""
    of: dict[Layer, bool] = {}
    for head in heads:
        if head.layer.file == group.layers[0].file:
            of[head.layer] = of.get(head.layer, True) and head.verdict.word == "healthy"
    right = [layer for layer, healthy in of.items() if healthy]
    if not right:
        return ""
    where = _layers_in_words(right)
    return counted("{where} is right", "{where} are right", len(right), where=where)


def place_in_words(heads: Sequence[Place]) -> str:
    """Return `layers 0–5, all 18 heads (blocks.*.attn)`."""
    layers = tuple(dict.fromkeys(layer for layer, _ in heads))
    where = joined([_layers_in_words(layers), _heads_in_words(heads)], ", ")
    where = message("{file}: {where}", file=layers[0].file, where=where) if layers[0].file else where
    modules = _modules(layers)
    return message("{where} ({modules})", where=where, modules=modules) if modules else where


def numbers_in_words(numbers: Iterable[int]) -> str:
    """Return `3`, `0 and 2`, `0–5`, `0–2, 5 and 7–9`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [part for run in runs for part in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))]
    if len(parts) > _LISTED:
        return message("{first}, … {last}", first=", ".join(parts[: _LISTED - 1]), last=parts[-1])
    if len(parts) == 1:
        return parts[0]
    return message("{most} and {last}", most=", ".join(parts[:-1]), last=parts[-1])


def head_numbers_in_words(heads: Collection[int]) -> str:
    """Return `head 3`, `heads 0–5`, or `heads 0, 2 and 7`."""
    return counted("head {numbers}", "heads {numbers}", len(heads), numbers=numbers_in_words(heads))


def _layers_in_words(layers: Sequence[Layer]) -> str:
    numbers = numbers_in_words(layer.index for layer in layers)
    return counted("layer {numbers}", "layers {numbers}", len(layers), numbers=numbers)


def _heads_in_words(heads: Sequence[Place]) -> str:
    """Return `all 8 heads`, `head 3`, `heads 0 and 2`, `7 of 16 heads`."""
    of: dict[Layer, list[int]] = {}
    for layer, head in heads:
        of.setdefault(layer, []).append(head)
    count = sum(layer.heads for layer in of)
    if len(heads) == count:
        return counted("its only head", "all {number} heads", count)
    numbers = {tuple(sorted(heads)) for heads in of.values()}
    if len(numbers) == 1:
        return head_numbers_in_words(*numbers)
    return message("{some} of {count} heads", some=len(heads), count=count)


def _modules(layers: Sequence[Layer]) -> str:
    """Return the names of modules, with * where they differ in a number: `blocks.*.attn`; empty without names."""
    names = [layer.name.removeprefix(f"{layer.file}: ") for layer in layers]
    if not all("." in name for name in names):
        return ""
    parts = [re.split(r"(\d+)", name) for name in names]
    if len({tuple(part[::2]) for part in parts}) > 1:
        return ""
    return "".join(letters[0] if len(set(letters)) == 1 else "*" for letters in zip(*parts, strict=True))
