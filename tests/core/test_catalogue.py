"""The declared statistics are the computed ones."""

from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import STATISTIC, STATISTICS


def test_every_declared_statistic_is_computed_by_some_measurement() -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[0]
    measurements = [
        run(Parameters(d_k=16, n_keys=12, n_queries=8, batch=4, sink="logit")),
        measure_head(capture, layer, 0, [file_rule(layer)]),
    ]
    columns = [column for measurement in measurements for column in measurement.columns]
    computed = {name for column in columns for name, found in column.measured.items() if found.value is not None}
    missing = [statistic.name for statistic in STATISTICS if statistic.name not in computed]
    assert not missing, f"declared in core/statistics/catalogue.py, but no measurement computes: {', '.join(missing)}"


def test_names_and_labels_of_statistics_are_unique() -> None:
    assert len(STATISTIC) == len(STATISTICS) == len({statistic.label for statistic in STATISTICS})
