"""The requests of the Capture pane for files with finite but extreme numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.statistics.measurement import Measurement
from attn_tui.tui.compute.request import Cache
from attn_tui.tui.panes.capture.requests import (
    ComparedHeads,
    CompareHeads,
    HeadStatistics,
    MeasureHead,
    MeasureHeads,
    OpenCapture,
)
from cases import for_each


def extreme(folder: Path, **metadata: float) -> OpenCapture:
    """A file with an ordinary head, a head that overflows, and a small one."""
    q = np.random.default_rng(0).normal(size=(3, 5, 4))
    sizes = np.array([1, 1e308, 1e-20])[:, np.newaxis, np.newaxis]
    arrays: dict[str, Any] = {"q": q * sizes, "k": q, "causal": False, **metadata}
    np.savez(folder / "x.npz", **arrays)
    return OpenCapture(folder / "x.npz")


def test_a_head_that_overflows_is_refused_and_the_others_measured(tmp_path: Path) -> None:
    file, cache = extreme(tmp_path, scale=0.5), Cache()
    *_, answer = MeasureHead(file, 0, 0, "none", "file").work(cache)
    assert isinstance(answer, Measurement)
    with pytest.raises(CaptureError, match="layer 0, head 1: logits overflow float64"):
        list(MeasureHead(file, 0, 1, "none", "file").work(cache))
    found: dict[tuple[int, int], Any] = {}
    for part in MeasureHeads(file).work(cache):
        if isinstance(part, HeadStatistics):
            found |= part.heads
    assert [place for place, measured in found.items() if measured is None] == [(0, 1)]
    assert found[0, 2]["max_weight"].value is not None


@for_each("metadata", [{"scale": 1e308}, {"scale": 5e-324}, {"scale": 0.5, "softcap": 5e-324}])
@for_each("rule", ["none", "rms_none"])
def test_an_extreme_scale_of_the_file_is_named(tmp_path: Path, metadata: dict[str, float], rule: str) -> None:
    with pytest.raises(CaptureError, match=r"flow float64: the (scale|soft-cap) must be from 1e-50 to 1e"):
        list(MeasureHead(extreme(tmp_path, **metadata), 0, 0, rule, "file").work(Cache()))


def test_tensors_that_are_named_are_those_of_the_file_and_of_its_baseline(tmp_path: Path) -> None:
    q = np.random.default_rng(0).normal(size=(2, 5, 4))
    for name in ("one.npz", "other.npz"):
        np.savez(tmp_path / name, left=q, right=q)
    file, cache = OpenCapture(tmp_path / "one.npz", tensor="q=left,k=right"), Cache()
    *_, compared, _ = CompareHeads(file, tmp_path / "other.npz").work(cache)
    assert isinstance(compared, ComparedHeads)
    assert [each.first for each in compared.heads] == [None, None]
