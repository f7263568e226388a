"""Find out why the heads of a layer are as they are, and rank heads worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...captures.capture import HeadSubject, Layer
from ...captures.files import CaptureError, NotFiniteError
from ...captures.head import CaptureFile
from ...statistics.measurement import Estimate, Measurement
from ..configuration import Configuration
from ..reading import read_subject
from ..subject import Facts
from ..verdict import diagnose, not_finite
from .reasons import Explained, Judged, Traits, has_evidence, judged, reasons, severity
from .traits import traits


def layer_traits(capture: CaptureFile, layer: Layer) -> Iterator[tuple[int, Traits | None]]:
    """Yield each head of a layer and what spreads its logits, None if it cannot be read."""
    for head in range(layer.heads):
        try:
            yield head, traits(capture, layer, head)
        except CaptureError:
            yield head, None


def judge(
    capture: CaptureFile, layer: Layer, head: int, own: Configuration | None, given: Configuration | None = None
) -> Judged | None:
    """Return what the evidence says of a head; None if there is none, or the head cannot be read."""
    if not has_evidence(layer):
        return None
    try:
        verdict = diagnose(read_subject(capture, layer, head, own, given), given)
    except NotFiniteError as error:
        verdict = not_finite(Facts(layer.d_k, layer.scale), str(error))
    except CaptureError:
        return None
    return None if verdict.verdict == "no-evidence" else judged(verdict)


def explained(
    measured: Mapping[str, Estimate], head: int, layer: Mapping[int, Traits | None], verdict: Judged | None
) -> Explained:
    """Return the reasons of a head; `layer` has the traits of all heads of its layer."""
    known = [each for each in layer.values() if each is not None]
    return Explained(reasons(measured, layer.get(head), known, verdict), verdict)


def rank(
    capture: CaptureFile, heads: Sequence[Measurement[HeadSubject]], own: Configuration | None
) -> Iterator[tuple[float, list[tuple[Measurement[HeadSubject], Explained]] | None]]:
    """Yield the finished fraction, 0 to 1, and with the last one the heads, worst first, with their reasons.

    The heads must have been measured at the file's scale. `own` is the configuration in the file.
    """
    of_layer: dict[int, dict[int, Traits | None]] = {}
    found: list[tuple[Measurement[HeadSubject], Explained]] = []
    for number, each in enumerate(heads):
        layer, head = each.subject.layer, each.subject.head
        if layer.position not in of_layer:
            of_layer[layer.position] = dict(layer_traits(capture, layer))
        measured = each.columns[-1].measured
        verdict = judge(capture, layer, head, own)
        found.append((each, explained(measured, head, of_layer[layer.position], verdict)))
        yield (number + 1) / len(heads), None
    yield 1.0, sorted(found, key=lambda each: severity(each[0].columns[-1].measured, each[1].verdict))
