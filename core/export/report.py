"""Export a measurement of the lab with its theory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..against import settings
from ..model_choice import context_note
from ..parameters import FIELDS, Parameters
from ..statistics.measurement import Measurement
from ..theory.prediction import status_given
from .columns import (
    COLUMN,
    OF_ALL_COLUMNS,
    THEORY,
    THEORY_ARITHMETIC,
    column_json,
    freezing_json,
    statistics_table,
    values,
)
from .formats import Say, csv_text, escaped, existing, json_text, version
from .words import parameter_words, theory_title

if TYPE_CHECKING:
    from ..theory.prediction import Prediction

_REPORT = "attn-tui/report-1"


def report_json(measurement: Measurement[Parameters], prediction: Prediction) -> str:
    """Return a measurement with its theory as one JSON object."""
    p = measurement.subject
    return json_text(
        {
            "schema": _REPORT,
            "version": version(),
            "parameters": {field.name: getattr(p, field.name) for field in FIELDS},
            **({"notes": [note]} if (note := context_note(p)) else {}),
            "theory_arithmetic": THEORY_ARITHMETIC,
            "columns": [
                column_json(column)
                | {
                    "theory": {name: existing(value) for name, value in exact.values.items()},
                    "freezing": freezing_json(exact.freezing),
                    "status": status_given(exact.freezing, column.measured),
                }
                for column, exact in zip(measurement.columns, prediction.columns, strict=True)
            ],
        }
    )


def report_csv(measurement: Measurement[Parameters], prediction: Prediction) -> str:
    """Return a line for each value. Every line contains its column's parameters, so files can be concatenated."""
    sides = settings(measurement.subject)
    asked = [field.name for field in FIELDS if field.name not in OF_ALL_COLUMNS]
    lines: list[list[Any]] = []
    for p, column, exact in zip(sides, measurement.columns, prediction.columns, strict=True):
        scale = [column.rule, column.multiplier, status_given(exact.freezing, column.measured)]
        place = [*(getattr(p, name) for name in asked), *scale]
        lines += [[*place, *value, existing(exact.values[value[0]]), THEORY_ARITHMETIC] for value in values(column)]
    return csv_text([*asked, *COLUMN, *THEORY], lines)


def report_markdown(measurement: Measurement[Parameters], prediction: Prediction, say: Say = str) -> str:
    """Return the parameters and a table with theory beside every column."""
    words = ", ".join(parameter_words(measurement.subject))
    table = statistics_table(
        measurement.columns, say, prediction.columns, theory_title(settings(measurement.subject))
    )
    return f"Parameters: {escaped(words, say)}\n\n{table}"
