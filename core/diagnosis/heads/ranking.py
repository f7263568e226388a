"""Find out why the heads of a layer are as they are, and rank heads worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...captures.capture import HeadSubject, Layer
from ...captures.files import CaptureError
from ...captures.head import CaptureFile
from ...statistics.measurement import Estimate, Measurement
from ..configuration import Configuration
from ..results import Verdict
from ..verdict import diagnose_head
from .reasons import HeadReasons, Traits, has_evidence, reasons, severity
from .traits import traits


class Known(NamedTuple):
    """What is known of a head besides its statistics."""

    traits: Traits | None  # None if it cannot be read
    verdict: Verdict | None  # None without evidence


def known(capture: CaptureFile, layer: Layer, head: int, own: Configuration | None) -> Known:
    """Return what spreads the logits of a head, and what its evidence says; `own` is the file's configuration."""
    try:
        found = traits(capture, layer, head)
    except CaptureError:
        found = None
    return Known(found, judge(capture, layer, head, own))


def judge(capture: CaptureFile, layer: Layer, head: int, own: Configuration | None) -> Verdict | None:
    """Return what the evidence says of a head; None if there is none, or the head cannot be read."""
    if not has_evidence(layer):
        return None
    try:
        verdict = diagnose_head(capture, layer, head, own, None)
    except CaptureError:
        return None
    return None if verdict.verdict == "no-evidence" else verdict


def explained(measured: Mapping[str, Estimate], head: int, layer: Mapping[int, Known]) -> HeadReasons:
    """Return the reasons of a head; `layer` has what is known of all heads of its layer."""
    own = layer[head]
    others = [each.traits for each in layer.values() if each.traits is not None]
    return HeadReasons(reasons(measured, own.traits, others, own.verdict), own.verdict)


def rank(
    heads: Sequence[Measurement[HeadSubject]], layers: Mapping[tuple[Path, int], Mapping[int, Known]]
) -> list[tuple[Measurement[HeadSubject], HeadReasons]]:
    """Return the heads with their reasons, worst first.

    The heads must have been measured at the file's scale. `layers` has what is known of all heads of their layers, by
    path and position of the layer, and by head.
    """
    found: list[tuple[Measurement[HeadSubject], HeadReasons]] = []
    for each in heads:
        layer, head = each.subject.layer, each.subject.head
        found.append((each, explained(each.columns[-1].measured, head, layers[layer.path, layer.position])))
    return sorted(found, key=lambda each: severity(each[0].columns[-1].measured, each[1].verdict))
