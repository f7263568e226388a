"""PANES: the pages of the app in their order. Each is loaded when it is first opened."""

from __future__ import annotations

from collections.abc import Callable

from .pane import Pane


def _lab() -> type[Pane]:
    from .lab import Lab

    return Lab


def _sweep() -> type[Pane]:
    from .sweep import SweepPane

    return SweepPane


def _softmax() -> type[Pane]:
    from .softmax import SoftmaxPane

    return SoftmaxPane


def _rules() -> type[Pane]:
    from .rules import RulesPane

    return RulesPane


def _heads() -> type[Pane]:
    from .heads import HeadsPane

    return HeadsPane


def _capture() -> type[Pane]:
    from .capture import CapturePane

    return CapturePane


def _claims() -> type[Pane]:
    from .claims import ClaimsPane

    return ClaimsPane


PANES: dict[str, Callable[[], type[Pane]]] = {
    "Lab": _lab,
    "Sweep": _sweep,
    "Softmax": _softmax,
    "Rules": _rules,
    "Heads": _heads,
    "Capture": _capture,
    "Claims": _claims,
}
