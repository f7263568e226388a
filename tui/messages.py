"""What parts of the app tell each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.message import Message

from ..core.parameters import Parameters
from ..core.statistics.measurement import Estimate, Measurement

if TYPE_CHECKING:
    from ..core.captures.reader import Capture
    from ..core.lab.claims import Claim, Outcome
    from ..core.lab.mechanisms import Row as MechanismRow
    from ..core.lab.prediction import PredictedColumn, Theory
    from ..core.lab.rule_curves import Curves
    from ..core.lab.rule_rows import Row as RuleRow
    from .views.sweep import SweptPoint
    from .work import Sweep


class ParametersEdited(Message):
    """The panel has other parameters; every value has been checked."""


class ParametersChanged(Message):
    """A pane has other parameters now, for all others to follow."""

    def __init__(self, parameters: Parameters, by: str) -> None:
        super().__init__()
        self.parameters = parameters
        self.by = by  # the pane's name


class ToLab(Message):
    """The Lab is to be shown with these parameters."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__()
        self.parameters = parameters


class StatusChanged(Message):
    """What a pane has to say in the top bar is not what stands there."""


class EditRejected(Message):
    """What is being typed is not accepted; with an empty reason, it no longer stands in the way."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Computed(Message):
    """From the compute thread, for the pane that asked; it does not bubble on.

    A newer message of the same kind replaces one that is still waiting.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__(bubble=False)

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Computed) and type(message) is type(self) and message.kind == self.kind


class MeasurementReady(Computed):
    """A measurement, perhaps of the first draws only; of the lab's, with its theory once that is at hand."""

    def __init__(self, kind: str, measurement: Measurement[Any], theory: Theory | None = None) -> None:
        super().__init__(kind)
        self.measurement = measurement
        self.theory = theory


class Progress(Computed):
    """How much of a long computation is done, 0 to 1."""

    def __init__(self, kind: str, fraction: float) -> None:
        super().__init__(kind)
        self.fraction = fraction


class CaptureOpened(Computed):
    """A file of queries and keys is open."""

    def __init__(self, kind: str, capture: Capture) -> None:
        super().__init__(kind)
        self.capture = capture


class Part(Computed):
    """Some of a result: what waits of the same kind is another part of it."""

    def can_replace(self, message: Message) -> bool:
        return False


class MeasuredPart(Part):
    """Some of a measurement, and how much of the work is done now, 0 to 1."""

    def __init__(self, kind: str, fraction: float) -> None:
        super().__init__(kind)
        self.fraction = fraction


class MapPart(Part):
    """Statistics of more heads, by (position of the layer, head); None for a head that cannot be read."""

    def __init__(self, kind: str, part: Sequence[tuple[tuple[int, int], Mapping[str, Estimate] | None]]) -> None:
        super().__init__(kind)
        self.part = part


class CurvesReady(Computed):
    """The exact values of a sweep at many d_k."""

    def __init__(self, kind: str, sweep: Sweep, exact: Mapping[int, Sequence[PredictedColumn]]) -> None:
        super().__init__(kind)
        self.sweep = sweep
        self.exact = exact


class SweepPart(MeasuredPart):
    """More points of a sweep."""

    def __init__(self, kind: str, sweep: Sweep, points: Mapping[int, SweptPoint], fraction: float) -> None:
        super().__init__(kind, fraction)
        self.sweep = sweep
        self.points = points


class RulesPart(MeasuredPart):
    """Scale rules that have been measured on a question."""

    def __init__(self, kind: str, question: Parameters, rows: Sequence[RuleRow], fraction: float) -> None:
        super().__init__(kind, fraction)
        self.question = question
        self.rows = rows


class RuleCurvesReady(Computed):
    """Entropy over d_k under every scale rule."""

    def __init__(self, kind: str, question: Parameters, curves: Curves) -> None:
        super().__init__(kind)
        self.question = question
        self.curves = curves


class MechanismsPart(MeasuredPart):
    """Mechanisms that have been measured at more d_k."""

    def __init__(self, kind: str, question: Parameters, rows: Sequence[MechanismRow], fraction: float) -> None:
        super().__init__(kind, fraction)
        self.question = question
        self.rows = rows


class ClaimsListed(Computed):
    """These claims are about to be put to the test."""

    def __init__(self, kind: str, claims: Sequence[Claim]) -> None:
        super().__init__(kind)
        self.claims = claims


class ClaimTested(Part):
    """One claim has been put to the test."""

    def __init__(self, kind: str, outcome: Outcome) -> None:
        super().__init__(kind)
        self.outcome = outcome


class Failed(Computed):
    """There is no result, for a reason that is the asker's to mend; one line."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind)
        self.reason = reason


class Crashed(Computed):
    """A defect of ours, on its way to the app's thread."""

    def __init__(self, kind: str, error: BaseException) -> None:
        super().__init__(kind)
        self.error = error
