"""Which head of the Capture pane is selected: by the list, by what is of note, and by what is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ....core.captures.capture import sample_path
from ....core.diagnosis.comparing.results import Comparison
from ....core.diagnosis.heads.summary import file_summary
from ....core.field import next_of
from ....core.message import message
from ....core.statistics.catalogue import STATISTIC, Statistic
from ..lists import choose_of
from ..pane import FileHead, Host
from .finding import ORDERS, change_words, find, ranked
from .parts import HeadList
from .requests import ComparedHeads, CompareHeads, OpenCapture
from .shown import ShownParts
from .sides import Sides
from .verdict_line import VerdictLine
from .widget import CHANGE

# What undo restores: file, pane that opened it, baseline, statistic, order, head.
RankedState: TypeAlias = tuple[OpenCapture, str, Path | None, Statistic, int, tuple[int, int]]


class RankedHeads(ShownParts):
    """Ranks the heads of a file, finds them, compares them with a baseline, and says what is known of the file."""

    def __init__(self, host: Host, file: OpenCapture) -> None:
        super().__init__(host)
        self.file = file
        self.order = 0  # of ORDERS
        self.places: Sequence[tuple[int, int]] = ()  # of the heads of the list
        self.baseline: Path | None = None  # a file that this one is compared with
        self.missing: tuple[str, ...] = ()  # what is in one of the two only
        self.source = ""  # the pane that opened the file, which Esc goes back to
        self.home: tuple[int, int] | None = None  # where the cursor waits for the first head of the list

    @property
    def files_read(self) -> Sequence[Path]:
        capture = self.map.capture
        baseline = () if self.baseline is None else (self.baseline,)
        return baseline if capture is None else (*capture.files, *baseline)

    def action_move(self, down: int, right: int) -> None:
        self.map.move(down, right)

    def show_item(self, item: FileHead) -> None:
        """Open a file with the cursor on a head, and compare it with a baseline."""
        self.source = item.source
        self.open_file(OpenCapture(item.path), item.place, item.baseline)
        self.follow()
        self.host.show_status()

    def open_file(self, file: OpenCapture, place: tuple[int, int], baseline: Path | None) -> None:
        """Show another file; `follow` asks for it."""
        self.file = file
        self.map.capture, self.map.cursor, self.home = None, place, None
        self._forget_baseline(baseline)
        self.set_problem("")
        self.verdict.show(message("Opening {name}.", name=(file.path or sample_path()).name))

    def restore_ranked(
        self,
        file: OpenCapture,
        source: str,
        baseline: Path | None,
        statistic: Statistic,
        order: int,
        cursor: tuple[int, int],
    ) -> None:
        """Restore what undo keeps of the file and its heads."""
        self.source = source
        if file != self.file:
            self.open_file(file, cursor, baseline)
        elif baseline != self.baseline:
            self._compare_with(baseline)
        self.map.select(*cursor)
        self.map.statistic, self.order = statistic, order
        self.map.redraw()
        self.rank()
        self.say_verdict()

    def rank(self) -> None:
        """Sort the list of heads."""
        capture = self.map.capture
        if capture is None:
            return
        statistic = self.map.statistic
        places = ranked(self.map, ORDERS[self.order])
        heads = [self.map.ranked_head(place) for place in places]
        worst = ORDERS[self.order] in ("worst", "layer")
        shown = STATISTIC["saturation"] if worst else statistic
        self.places = places
        at = places.index(self.map.cursor) if self.map.cursor in places else None
        self.list.show(heads, self._titles[self.order], shown, at)

    def to_first(self) -> None:
        """Go to the first head of the list unless another was chosen, or nothing contradicts it."""
        if self.places and self.home == self.map.cursor and self.map.is_contradicted(self.places[0]):
            self.go(self.places[0])
        self.home = None

    @property
    def doubt(self) -> str:
        """What is said of a head that was computed otherwise than its file says."""
        verdict = self.map.verdicts.get(self.map.cursor)
        wrong = verdict is not None and verdict.is_wrong
        return message("As the file says, not as it was computed.") if wrong else ""

    def say_whose(self, sides: Sides) -> None:
        """Say beside the attention whether it is as computed, which is about the file's scale, and the soft-cap."""
        capture = self.map.capture
        self.bars.softcap = None if capture is None else sides.cap(capture.layers[self.map.cursor[0]])
        self.matrix.disputed = bool(self.doubt)
        self.bars.disputed = self.matrix.disputed and sides.of_file
        for part in (self.matrix, self.bars):
            part.redraw()

    def say_verdict(self) -> None:
        """Show the verdict on the file."""
        capture = self.map.capture
        if capture is not None and not self.results.why_stale:
            forms = file_summary(capture.layers, self.map.measured, self.map.verdicts, capture.disagreements)
            if self.baseline is not None and self.map.compared:
                found = Comparison(
                    tuple(self.map.compared[each] for each in sorted(self.map.compared)), self.missing, ()
                )
                words = change_words(found, self.baseline.name)
                self.verdict.show(*words, role="alert" if found.differs else "text")
                return
            wrong = any(each.is_wrong for each in self.map.verdicts.values())
            self.verdict.show(*forms, role="alert" if wrong else "text")

    def learn_changes(self, answer: ComparedHeads) -> None:
        """Show how more heads differ from the baseline; the map and list turn to that with the first ones."""
        if answer.baseline != self.baseline:
            return
        first = not self.map.compared
        self.map.compared.update({(each.test_layer.position, each.test_head): each for each in answer.heads})
        self.missing = answer.missing
        if first and self.map.compared:
            self.map.statistic, self.order = CHANGE, ORDERS.index("largest")
        self.map.redraw()
        self.rank()
        self.say_verdict()

    def on_head_list_chosen(self, event: HeadList.Chosen) -> None:
        event.stop()
        self.go(self.places[event.number])

    def on_verdict_line_answered(self, event: VerdictLine.Answered) -> None:
        event.stop()
        if event.question == "baseline":
            self.verdict.close()
            self._compare_with(Path(event.text).expanduser() if event.text else None)
            return
        capture = self.map.capture
        if capture is None or not event.text:
            self.verdict.close()
            return
        layer = capture.layers[self.map.cursor[0]]
        found = find(event.text, capture.layers, layer, self.matrix.tokens[0], self.matrix.cursor[0])
        if isinstance(found, str):
            self.verdict.refuse(found)
            return
        self.verdict.close()
        if isinstance(found, tuple):
            self.go(found)
        else:
            self.matrix.choose(found, self.matrix.cursor[1])

    def _compare_with(self, baseline: Path | None) -> None:
        """Compare with another file, or with none."""
        self._forget_baseline(baseline)
        if baseline is not None:
            self.home = self.map.cursor
            self.ask(CompareHeads(self.file, baseline))
        self.map.redraw()
        self.rank()
        self.say_verdict()

    def _forget_baseline(self, baseline: Path | None) -> None:
        """Replace the baseline, and show nothing of the earlier one."""
        self.host.engine.withdraw(CompareHeads)
        self.baseline = baseline
        self.map.compared.clear()
        if self.map.statistic is CHANGE:
            self.map.statistic, self.order = STATISTIC["saturation"], 0

    def go(self, place: tuple[int, int]) -> None:
        self.map.move(place[0] - self.map.cursor[0], place[1] - self.map.cursor[1])

    def action_of_note(self, direction: int) -> None:
        """Go to the next head of the list that is not healthy."""
        noted = [place for place in self.places if self.map.is_of_note(place)]
        if not noted:
            same = message("No head compared so far differs from the baseline.")
            self.host.say(same if self.map.compared else message("Every head measured so far is healthy."))
            return
        after = [self.places.index(place) for place in noted]
        at = self.places.index(self.map.cursor) if self.map.cursor in self.places else -1
        if direction > 0:
            chosen = next((n for n in after if n > at), after[0])
        else:
            chosen = next((n for n in reversed(after) if n < at), after[-1])
        self.go(self.places[chosen])

    def action_find(self) -> None:
        if self.map.capture is not None:
            self.verdict.ask("find")

    def action_baseline(self) -> None:
        if self.map.capture is not None:
            self.verdict.ask("baseline", "" if self.baseline is None else str(self.baseline))

    def action_statistic(self) -> None:
        self.show_statistic(next_of(self.map.choices, self.map.statistic).name)

    def show_statistic(self, name: str) -> None:
        """Show the statistic with this name on the map."""
        self.map.statistic = next(each for each in self.map.choices if each.name == name)
        self.map.redraw()
        self.rank()

    def action_back(self) -> None:
        """Go back to the pane that opened the file, if one did."""
        if self.source:
            self.host.to_pane(self.source)

    def action_order(self) -> None:
        """Sort the list in the next order."""
        self._show_order((self.order + 1) % len(ORDERS))

    def action_choose_order(self) -> None:
        """Choose the order of the list from a list."""
        choose_of(self.host, message("order"), [*enumerate(self._titles)], self.order, self._show_order)

    def _show_order(self, order: int) -> None:
        self.order = order
        self.rank()

    @property
    def _titles(self) -> Sequence[str]:
        """What each of ORDERS is called."""
        label = self.map.statistic.label
        return (
            message("worst first"),
            message("largest {statistic} first", statistic=label),
            message("smallest {statistic} first", statistic=label),
            message("by layer"),
        )
