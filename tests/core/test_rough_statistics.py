"""A first look at a large file: statistics of a few rows of a head; `attention_in_full.py` has those of all rows."""

from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.heads.rows import is_large, rough_statistics
from capture_files import opened


def test_of_some_rows_they_are_near() -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[2]
    for head in range(12):
        exact = measure_head(capture, layer, head, [file_rule(layer)]).columns[0].measured["entropy"].value
        found = rough_statistics(capture, layer, head, rows=24)["entropy"].value
        assert found == pytest.approx(exact, abs=0.5)
        assert found != exact


def test_only_large_heads_need_a_first_look(tmp_path: Path) -> None:
    assert not is_large(open_capture(sample_path()).layers[0])
    side = np.ones((3, 2, 200, 8), np.float32)
    assert is_large(opened(tmp_path, {"q": side, "k": side}).layers[0])
