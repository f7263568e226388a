"""Statistics of captured heads are over the rows of real tokens, recomputed here from the tensors of the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from capture_files import save
from cases import for_each
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

PADDED = Path(__file__).parents[1] / "data" / "minilm-sample-padded.safetensors"


def recomputed(rows: list[Any]) -> dict[str, float]:
    """The statistics of rows of visible logits, each row as long as the keys it sees."""
    weights = [np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in rows]
    several = [at for at, row in enumerate(rows) if len(row) > 1]
    norms = [np.linalg.norm(np.diag(p) - np.outer(p, p)) for p in weights]
    entropy = [-np.sum(p * np.log(np.maximum(p, 1e-300))) for p in weights]
    found: dict[str, Any] = {
        "logit_std": np.concatenate(rows).std(),
        "saturation": np.mean([rows[at].std() / np.sqrt(2 * np.log(len(rows[at]))) for at in several]),
        "entropy": np.mean(entropy),
        "entropy_fraction": np.mean([entropy[at] / np.log(len(rows[at])) for at in several]),
        "max_weight": np.mean([p.max() for p in weights]),
        "one_hot_rows": np.mean([weights[at].max() > 0.95 for at in several]),
        "first_key_weight": np.mean([p[0] for p in weights]),
        "first_key_over_uniform": np.mean([p[0] for p in weights]) / np.mean([1 / len(p) for p in weights]),
        "jacobian_norm": np.mean(norms),
        "dead_rows": np.mean([norms[at] < 0.01 for at in several]),
    }
    return {name: float(value) for name, value in found.items()}


def assert_measured(path: Path, layer: int, head: int, rows: list[Any], rel: float = 1e-9) -> None:
    capture = open_capture(path)
    measured = (
        measure_head(capture, capture.layers[layer], head, [file_rule(capture.layers[layer])]).columns[0].measured
    )
    for name, value in recomputed(rows).items():
        assert measured[name].value == pytest.approx(value, rel=rel, abs=1e-12), name


@for_each("head", range(0, 12, 2))
def test_rows_of_padding_tokens_are_not_counted(head: int) -> None:
    """The second text has 21 of 70 tokens; its other 49 rows are of padding."""
    tensors = load_file(PADDED)
    capture = open_capture(PADDED)
    layer, lengths = capture.layers[0], (70, 21)
    q, k = (tensors[f"layers.0.attn.{side}"][:, head].astype(np.float64) for side in ("q", "k"))
    assert layer.scale is not None
    texts = [layer.scale * q[text, :n] @ k[text, :n].T for text, n in enumerate(lengths)]
    rows = [row for logits in texts for row in logits]
    assert_measured(PADDED, 0, head, rows, 1e-6)  # stored in float16, multiplied in float32


def test_rows_of_padding_tokens_of_a_causal_file_are_not_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.normal(0, 2, (3, 1, 9, 4)) for _ in range(2))
    lengths = [9, 5, 1]
    path = save(tmp_path / "x.safetensors", {"q": q, "k": k}, lengths=lengths, scale=0.5, causal="true")
    rows = [
        0.5 * q[text, 0, place] @ k[text, 0, : place + 1].T for text, n in enumerate(lengths) for place in range(n)
    ]
    assert_measured(path, 0, 0, rows)
