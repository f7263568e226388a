"""The heads of a capture: what is known of them, in which order they are listed, and which one is selected."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from ....core.diagnosis.comparing.results import (
    Comparison,
    compared,
    difference_in_words,
    in_words_of_baseline,
)
from ....core.diagnosis.groups import HeadVerdict, faults_of, groups, place_in_words
from ....core.diagnosis.heads.reasons import has_evidence, head_word, severity
from ....core.diagnosis.heads.summary import file_summary
from ....core.diagnosis.results import STAGES, is_of_scale
from ....core.errors import InputError
from ....core.message import message
from ....core.statistics.catalogue import ALWAYS, STATISTIC, Statistic
from ....core.statistics.measurement import Estimate
from ....core.tables.diagnosis import difference_counts
from ...views.results.model_page import ModelPage
from ...views.results.ranked import RankedHead
from .row import token

if TYPE_CHECKING:
    from ....core.captures.capture import CaptureContents, Layer
    from ....core.diagnosis.comparing.results import HeadComparison
    from ....core.diagnosis.heads.reasons import HeadReasons
    from ....core.diagnosis.results import Verdict
    from .requests import ComparedHeads, HeadStatistics, Place

Order: TypeAlias = Literal["worst", "largest", "smallest", "layer"]
ORDERS: tuple[Order, ...] = ("worst", "largest", "smallest", "layer")
RATIO = Statistic(
    "multiplier_ratio", message("multiplier ÷ expected"), "logits", "number", "m / m₀",
    message("The multiplier that the file's weights, log-sum-exps or outputs show, over the expected one."),
    "docs/diagnose.md", message("÷ expected"),
)  # fmt: skip
CHANGE = Statistic(
    "change", message("change from the baseline"), "attention", "number", "KL(baseline ‖ this)",
    message("How far the weights are from those of the baseline; of different texts, the change of entropy / ln n."),
    "docs/diagnose.md", message("change"),
)  # fmt: skip


class HeadRanking(NamedTuple):
    """The list of heads: its rows, its order in words, what its bars show, and the row of the selected head."""

    heads: Sequence[RankedHead]
    title: str
    statistic: Statistic
    at: int | None


class Heads:
    """What is known of the heads of a file so far. A place is (position of the layer, head)."""

    def __init__(self) -> None:
        self.capture: CaptureContents | None = None
        self.cursor: Place = (0, 0)
        self.statistic: Statistic = STATISTIC["saturation"]  # on the map
        self.order = 0  # of ORDERS
        self.places: Sequence[Place] = ()  # in the order of the list
        self.measured: dict[Place, Mapping[str, Estimate] | None] = {}
        self.explained: dict[Place, HeadReasons] = {}
        self.rough: set[Place] = set()  # heads of which only a few rows were measured
        self.compared: dict[Place, HeadComparison] = {}  # with the baseline
        self.baseline: Path | None = None  # a file that this one is compared with
        self.news: ComparedHeads | None = None  # the last heads compared with it, and which are to be
        self._pairs: list[HeadComparison] = []  # all of them, as they came
        self._page: ModelPage | None = None  # what is said of the file, with the cursor of another time
        self._said: tuple[Sequence[str], bool] | None = None

    def open(self, capture: CaptureContents) -> None:
        """Take another file; the cursor stays if its head exists."""
        self.capture = capture
        for known in (self.measured, self.explained, self.rough, self.compared, self._pairs):
            known.clear()
        self._forget()
        self.select(*self.cursor)
        if self.statistic not in self.choices:
            self.statistic = STATISTIC["saturation"]

    def learn(self, statistics: HeadStatistics) -> None:
        """Add statistics of heads; rough ones do not replace others."""
        for place, measured in statistics.heads.items():
            if not statistics.rough:
                self.rough.discard(place)
            elif place in self.measured and place not in self.rough:
                continue
            else:
                self.rough.add(place)
            self.measured[place] = measured
        self.explained.update(statistics.explained)
        self._forget()

    def learn_changes(self, changes: ComparedHeads) -> None:
        """Add how more heads differ from the baseline; map and list turn to that with the first ones."""
        first = not self.compared
        known = [*self.compared.values(), *changes.heads]
        heads = compared(sorted(known, key=lambda head: head.test_layer.position), (), ()).heads
        self.compared = {(head.test_layer.position, head.test_head): head for head in heads}
        self.news, self._pairs = changes, [*self._pairs, *changes.heads]
        self._forget()
        if first and self.compared:
            self.statistic, self.order = CHANGE, ORDERS.index("largest")

    def compare_with(self, baseline: Path | None) -> None:
        """Replace the baseline, and forget what differed from the earlier one."""
        self.baseline, self.news = baseline, None
        self.compared.clear()
        self._pairs.clear()
        self._forget()
        if self.statistic is CHANGE:
            self.statistic, self.order = STATISTIC["saturation"], 0

    # What is known of a head

    @property
    def layer(self) -> Layer:
        """The layer of the selected head."""
        assert self.capture is not None
        return self.capture.layers[self.cursor[0]]

    @property
    def choices(self) -> Sequence[Statistic]:
        """What the map can show; the multiplier if the file has evidence of it, the change if there is a baseline."""
        layers = self.capture.layers if self.capture is not None else ()
        ratio = (RATIO,) if any(map(has_evidence, layers)) else ()
        return (*ALWAYS, *ratio, *((CHANGE,) if self.compared else ()))

    @property
    def is_judged(self) -> bool:
        """Whether there is a verdict on the file: it has evidence of its scale, or is compared with a baseline."""
        layers = self.capture.layers if self.capture is not None else ()
        return bool(self.compared) or any(map(has_evidence, layers))

    @property
    def page(self) -> ModelPage:
        """What is said of the file and of the selected head."""
        if self._page is None:
            layers = self.capture.layers if self.capture is not None else ()
            heads = [HeadVerdict(layers[at[0]], at[1], verdict) for at, verdict in sorted(self.verdicts.items())]
            found = groups(fault for head in heads for fault in faults_of(head))
            name = "" if self.baseline is None else self.baseline.name
            ratios = {
                place: figures["saturation"].value for place, figures in self.measured.items() if figures is not None
            }
            known = {place: ratio for place, ratio in ratios.items() if ratio is not None and math.isfinite(ratio)}
            self._page = ModelPage(layers, heads, found, self.cursor, self._comparison(), name, known)
        return self._page._replace(cursor=self.cursor)

    def _comparison(self) -> Comparison | None:
        """Return how the heads compared so far differ from the baseline, if there is one."""
        if self.news is None or not self.compared:
            return None
        return compared([self.compared[place] for place in sorted(self.compared)], self.news.plan.missing, ())

    @property
    def comparison(self) -> Comparison:
        """The complete comparison with the baseline; raise InputError if heads are missing."""
        asked = () if self.news is None else self.news.plan.pairs
        if self.news is None or len(self._pairs) < len(asked):
            raise InputError("{done} of {asked} heads compared so far.", done=len(self._pairs), asked=len(asked))
        return compared(self._pairs, self.news.plan.missing, self.news.plan.notes)

    def _forget(self) -> None:
        """Work out what is said of the file again: a key that moves the cursor alone does not."""
        self._page = self._said = None

    @property
    def verdicts(self) -> Mapping[Place, Verdict]:
        """What the evidence says of heads that have some."""
        return {place: reasons.verdict for place, reasons in self.explained.items() if reasons.verdict is not None}

    def value(self, place: Place) -> float | None:
        """Return the statistic of a head; None if it has none."""
        if self.statistic is RATIO:
            reasons = self.explained.get(place)
            return None if reasons is None or reasons.verdict is None else reasons.verdict.ratio
        if self.statistic is CHANGE:
            return self.compared[place].change if place in self.compared else None
        measured = self.measured[place]
        return None if measured is None else measured[self.statistic.name].value

    def is_of_note(self, place: Place) -> bool:
        """Return whether a head differs from the baseline; without one, whether it is not healthy or is wrong."""
        if self.compared:
            return place in self.compared and self.compared[place].first is not None
        measured, reasons = self.measured[place], self.explained.get(place)
        return measured is None or head_word(measured, reasons and reasons.verdict) not in ("healthy", None)

    @property
    def doubt(self) -> str:
        """What is said of the selected head if it was computed otherwise than its file says."""
        verdict = self.verdicts.get(self.cursor)
        wrong = verdict is not None and verdict.is_wrong
        return message("As the file says, not as it was computed.") if wrong else ""

    @property
    def products(self) -> tuple[float, float] | None:
        """What q·k of the selected head was multiplied by, and what it should be, if nothing else is wrong."""
        verdict = self.verdicts.get(self.cursor)
        if verdict is None or not verdict.findings or not all(map(is_of_scale, verdict.findings)):
            return None
        used, expected = verdict.multiplier, verdict.expected.multiplier
        return None if used is None or expected is None else (used, expected)

    def reasons(self, place: Place) -> tuple[str, ...]:
        """Return why a head has its status, what differs from the baseline first."""
        reasons = self.explained.get(place)
        because = reasons.because if reasons is not None else ()
        first = self.compared[place].first if place in self.compared else None
        if first is None:
            return because
        words = message("{stage} differs: {says}", stage=STAGES[first.name], says=first.says)
        return (in_words_of_baseline(words), *because)

    # The list

    def rank(self) -> HeadRanking:
        """Sort the heads known so far, and return their list."""
        self.places = sorted(self.measured, key=self._key)
        at = self.places.index(self.cursor) if self.cursor in self.places else None
        worst = ORDERS[self.order] in ("worst", "layer")
        shown = STATISTIC["saturation"] if worst else self.statistic
        return HeadRanking([self._ranked_head(place) for place in self.places], self.titles[self.order], shown, at)

    def _key(self, place: Place) -> tuple[object, ...]:
        order = ORDERS[self.order]
        if order == "layer":
            return place
        if order == "worst":
            return severity(self.measured[place], self.verdicts.get(place)), place
        value = self.value(place)
        known = value is not None and math.isfinite(value)
        return not known, (-1 if order == "largest" else 1) * value if known and value is not None else 0.0, place

    def _ranked_head(self, place: Place) -> RankedHead:
        assert self.capture is not None
        measured, reasons = self.measured[place], self.explained.get(place)
        if measured is not None and self.statistic in (RATIO, CHANGE):
            measured = {**measured, self.statistic.name: Estimate(self.value(place), None)}
        index, verdict = self.capture.layers[place[0]].index, reasons.verdict if reasons is not None else None
        return RankedHead(index, place[1], measured, self.reasons(place), place in self.rough, verdict=verdict)

    @property
    def titles(self) -> Sequence[str]:
        """What each of ORDERS is called."""
        label = self.statistic.label
        return (
            message("worst first"),
            message("largest {statistic} first", statistic=label),
            message("smallest {statistic} first", statistic=label),
            message("by layer"),
        )

    # Selecting a head

    def select(self, layer: int, head: int) -> None:
        """Put the cursor on a head, or on the nearest one that exists."""
        if self.capture is not None:
            layer = min(max(layer, 0), len(self.capture.layers) - 1)
            head = min(max(head, 0), self.capture.layers[layer].heads - 1)
        self.cursor = (layer, head)

    def next_of_note(self, direction: int) -> Place | None:
        """Return the next head of the list that is of note, around its end; None if none is."""
        noted = [at for at, place in enumerate(self.places) if self.is_of_note(place)]
        if not noted:
            return None
        here = self.places.index(self.cursor) if self.cursor in self.places else -1
        beyond = [at for at in noted if (at > here if direction > 0 else at < here)]
        return self.places[(beyond or noted)[0 if direction > 0 else -1]]

    # What is said of the file

    def verdict(self) -> tuple[Sequence[str], bool]:
        """Return the verdict on the file, in forms from long to short, and whether it is bad."""
        if self._said is None:
            self._said = self._verdict()
        return self._said

    def _verdict(self) -> tuple[Sequence[str], bool]:
        assert self.capture is not None
        found = self.page.comparison
        if self.baseline is not None and found is not None:
            return change_words(found, self.baseline.name), found.differs
        forms = file_summary(self.capture.layers, self.measured, self.verdicts, self.capture.disagreements)
        return forms, any(verdict.is_wrong for verdict in self.verdicts.values())


def find(
    text: str, layers: Sequence[Layer], layer: Layer, tokens: Sequence[str] | None, query: int
) -> tuple[int, int] | int | str:
    """Return the (position, head) of a head such as `18/7`, the next query with a token, or why there is none.

    A number is a query; other texts are looked for in the tokens of the text, after `query`, ignoring case.
    """
    if match := re.fullmatch(r"(\d+)\s*/\s*(\d+)", text):
        index, head = map(int, match.groups())
        position = next((layer.position for layer in layers if layer.index == index), None)
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
    found = next((place for place in order if wanted in token(tokens, place + shift).casefold()), None)
    return message("no token contains {text}", text=text) if found is None else found


def change_words(comparison: Comparison, name: str) -> list[str]:
    """Return the first stage that differs from a baseline, and where, in forms of which each is shorter."""
    if comparison.first is None:
        words = comparison.missing[0] if comparison.missing else message("nothing differs")
        return [message("against {name}: {found}", name=name, found=in_words_of_baseline(words))]
    stage, heads = comparison.first
    place = place_in_words([(head.test_layer, head.test_head) for head in heads])
    first = message(
        "FIRST DIFFERENCE from {name}: {stage}, {place}", name=name, stage=STAGES[stage.name], place=place
    )
    says, counts = difference_in_words(heads), difference_counts(comparison)
    forms = [
        message("{first}: {says}; {counts}", first=first, says=says, counts=counts),
        message("{first}: {says}", first=first, says=says),
        first,
    ]
    return [*map(in_words_of_baseline, forms)]
