"""Results as JSON, CSV and Markdown. Everywhere a value that does not exist is absent (null, an empty cell, —)."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .attention.scales import SCALE_RULES
from .parameters import FIELDS, Field, Parameters, choice_word
from .statistics.catalogue import STATISTIC, STATISTICS, Statistic
from .statistics.measurement import Column, Estimate, Measurement

if TYPE_CHECKING:  # `attn-tui --version` asks this module, without waiting for NumPy
    from .captures.heads import HeadSubject
    from .captures.reader import Capture
    from .lab.claims import Outcome
    from .lab.theory import Prediction

HeadMeasurement: TypeAlias = "Measurement[HeadSubject]"
Say: TypeAlias = Callable[[str], str]  # how text is spelled, as in ASCII

_REPORT = "attn-tui/report-1"
_INSPECT = "attn-tui/inspect-1"
_CLAIMS = "attn-tui/claims-1"
_NONE = "—"


def version() -> str:
    """The version of the program that makes the results."""
    from importlib import metadata  # ten milliseconds that only a result or --version has to spend

    return metadata.version("attn-tui")


def report_json(measurement: Measurement[Parameters], prediction: Prediction) -> str:
    """A measurement of the lab, with its theory, as one JSON object."""
    p = measurement.subject
    return _json(
        {
            "schema": _REPORT,
            "version": version(),
            "parameters": {field.name: getattr(p, field.name) for field in FIELDS},
            "columns": [
                _column(column) | {"theory": {name: _existing(value) for name, value in exact.values.items()}}
                for column, exact in zip(measurement.columns, prediction.columns, strict=True)
            ],
        }
    )


def inspect_json(capture: Capture, heads: Sequence[HeadMeasurement]) -> str:
    """Heads of a capture as one JSON object: an entry for each head and scale."""
    return _json(
        {
            "schema": _INSPECT,
            "version": version(),
            "file": {
                "path": str(capture.path),
                "model": capture.model,
                "source": capture.source,
                "licence": capture.licence,
                "notes": list(capture.notes),
            },
            "heads": [
                {
                    "layer": head.subject.layer.index,
                    "layer_name": head.subject.layer.name,
                    "head": head.subject.head,
                    "d_k": head.subject.layer.d_k,
                    **_column(column),
                }
                for head in heads
                for column in head.columns
            ],
        }
    )


def report_csv(measurement: Measurement[Parameters], prediction: Prediction) -> str:
    """A line for each value: the parameters, the column's scale, the statistic. Files can be joined as they are."""
    p = measurement.subject
    asked = {field.name: getattr(p, field.name) for field in FIELDS if field.name not in ("scale", "multiplier")}
    lines: list[list[Any]] = []
    for column, exact in zip(measurement.columns, prediction.columns, strict=True):
        place = [*asked.values(), column.rule, column.multiplier]
        lines += [[*place, *value, _existing(exact.values[value[0]])] for value in _values(column)]
    return _csv([*asked, *_COLUMN, "theory"], lines)


def inspect_csv(heads: Sequence[HeadMeasurement]) -> str:
    """A line for each value: the head, the scale, the statistic. Two layers of one number differ by name."""
    lines: list[list[Any]] = []
    for head in heads:
        layer = head.subject.layer
        for column in head.columns:
            place = [layer.index, layer.name, head.subject.head, layer.d_k, column.rule, column.multiplier]
            lines += [[*place, *value] for value in _values(column)]
    return _csv(["layer", "layer_name", "head", "d_k", *_COLUMN], lines)


def report_markdown(measurement: Measurement[Parameters], prediction: Prediction, say: Say = str) -> str:
    """The parameters and the table, theory beside every column."""
    words = ", ".join(parameter_words(measurement.subject))
    exact = [column.values for column in prediction.columns]
    return f"Parameters: {_escaped(words, say)}\n\n{_statistics_table(measurement.columns, say, exact)}"


def head_markdown(capture: Capture, head: HeadMeasurement, say: Say = str) -> str:
    """One head: what it is and the table."""
    layer = head.subject.layer
    title = f"layer {layer.index}, head {head.subject.head}, d_k {layer.d_k}"
    return f"{_file_line(capture, say)}: {title}\n\n{_statistics_table(head.columns, say)}"


def heads_markdown(
    capture: Capture,
    heads: Sequence[HeadMeasurement],
    shown: Sequence[str],
    word: Callable[[Mapping[str, Estimate]], str],
    say: Say = str,
) -> str:
    """A line for each head: the statistics of these names, and a word for what they amount to."""
    statistics = [STATISTIC[name] for name in shown]
    header = ["layer", "head", "d_k", "multiplier", *(_name(statistic) for statistic in statistics), "in a word"]
    lines: list[list[str]] = []
    for head in heads:
        layer = head.subject.layer
        for column in head.columns:
            cells = [_short_cell(column.measured[statistic.name], statistic) for statistic in statistics]
            numbers = [str(layer.index), str(head.subject.head), str(layer.d_k), _digits(column.multiplier)]
            lines.append([_escaped(text, say) for text in (*numbers, *cells, word(column.measured))])
    return f"{_file_line(capture, say)}\n\n{_markdown([_escaped(text, say) for text in header], lines)}"


def parameter_words(parameters: Parameters, fields: Sequence[Field] = FIELDS) -> list[str]:
    """`d_k 64`, `keys 128`, …: of these fields, those that have an effect, as people call them."""
    return [f"{field.label} {parameter_word(field, parameters)}" for field in fields if field.applies(parameters)]


def parameter_word(field: Field, parameters: Parameters) -> str:
    """A value as people write it: formulas for scale rules, words for laws."""
    value = getattr(parameters, field.name)
    if field.name == "scale":
        return SCALE_RULES[value].formula
    return choice_word(value) if field.kind == "choice" else field.format(value)


def claims_json(outcomes: Sequence[Outcome]) -> str:
    """What became of claims, as one JSON object."""
    return _json(
        {
            "schema": _CLAIMS,
            "version": version(),
            "claims": [
                {
                    "id": outcome.claim.id,
                    "statement": outcome.claim.statement,
                    "source": outcome.claim.source,
                    "verdict": outcome.verdict,
                    "reason": outcome.reason,
                    "why": outcome.claim.why,
                    "figures": [
                        {
                            "label": finding.label,
                            "claimed": finding.claimed,
                            "measured": None if finding.measured is None else _estimate(finding.measured),
                            "exact": _existing(finding.exact),
                            "agrees": finding.agrees,
                        }
                        for finding in outcome.findings
                    ],
                }
                for outcome in outcomes
            ],
        }
    )


def claims_csv(outcomes: Sequence[Outcome]) -> str:
    """A line for each figure; a claim without any has one line of its own."""
    lines: list[list[Any]] = []
    for outcome in outcomes:
        place = [outcome.claim.id, outcome.verdict]
        for finding in outcome.findings:
            measured = finding.measured or Estimate(None, None)
            known = [_existing(number) for number in (*measured, finding.exact)]
            lines.append([*place, finding.label, finding.claimed, *known, finding.agrees])
        if not outcome.findings:
            lines.append([*place, *[None] * 6])
    return _csv(["claim", "verdict", "figure", "claimed", "measured", "stderr", "exact", "agrees"], lines)


def claims_markdown(outcomes: Sequence[Outcome], say: Say = str) -> str:
    """A line for each claim: the verdict, the statement, and why the verdict is so."""
    rule = "| verdict | claim | because |\n| :-- | :-- | :-- |\n"
    return rule + "".join(
        f"| {_escaped(o.verdict, say)} | {_escaped(o.claim.statement, say)} | {_escaped(o.reason, say)} |\n"
        for o in outcomes
    )


_COLUMN = ("scale", "multiplier", "statistic", "value", "stderr")


def _column(column: Column) -> dict[str, Any]:
    return {
        "scale": {"rule": column.rule, "multiplier": column.multiplier},
        "measured": {name: _estimate(estimate) for name, estimate in column.measured.items()},
    }


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"value": _existing(estimate.value), "stderr": _existing(estimate.stderr)}


def _values(column: Column) -> Iterator[list[Any]]:
    for name, estimate in column.measured.items():
        yield [name, _existing(estimate.value), _existing(estimate.stderr)]


def _existing(number: float | None) -> float | None:
    """No format has a word for a number that is none."""
    return float(number) if number is not None and math.isfinite(number) else None


def _json(result: Mapping[str, Any]) -> str:
    return json.dumps(result, indent=2, allow_nan=False) + "\n"


def _csv(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()


def _statistics_table(columns: Sequence[Column], say: Say, theory: Sequence[Mapping[str, float | None]] = ()) -> str:
    """The statistics of each column, with its exact values in a column of their own where there is theory."""
    titles = [[_title(column), "theory"] if theory else [_title(column)] for column in columns]
    header = ["", *(title for pair in titles for title in pair)]
    lines: list[list[str]] = []
    group = ""
    for statistic in STATISTICS:
        if statistic.group != group:
            group = statistic.group
            lines.append([f"**{group}**"] + [""] * (len(header) - 1))
        cells = [statistic.label]
        for index, column in enumerate(columns):
            cells.append(_cell(column.measured[statistic.name], statistic))
            if theory:
                cells.append(_cell(Estimate(theory[index][statistic.name], None), statistic))
        lines.append([_escaped(text, say) for text in cells])
    return _markdown([_escaped(text, say) for text in header], lines)


def _title(column: Column) -> str:
    """`unscaled × 1`, `scaled × 0.125 (1/√d_k)`, `the file's × 0.1768`."""
    word = {"none": "unscaled", "file": "the file's"}.get(column.rule, "scaled")
    title = f"{word} × {_digits(column.multiplier)}"
    named = column.rule not in ("none", "file", "custom")
    return f"{title} ({SCALE_RULES[column.rule].formula})" if named else title


def _file_line(capture: Capture, say: Say) -> str:
    parts = (str(capture.path), capture.model, capture.licence)
    return _escaped(" · ".join(part for part in parts if part), say)


def _name(statistic: Statistic) -> str:
    return f"{statistic.label}, %" if statistic.unit == "share" else statistic.label


def _cell(estimate: Estimate, statistic: Statistic) -> str:
    """`4.371 ± 0.002`, and shares in per cent."""
    value, stderr = _existing(estimate.value), _existing(estimate.stderr)
    if value is None:
        return _NONE
    factor, unit = (100, " %") if statistic.unit == "share" else (1, "")
    deviation = "" if stderr is None else f" ± {factor * stderr:.2g}"
    return f"{_digits(factor * value)}{deviation}{unit}"


def _short_cell(estimate: Estimate, statistic: Statistic) -> str:
    """The value alone; its unit stands in the header."""
    value = _existing(estimate.value)
    return _NONE if value is None else _digits((100 if statistic.unit == "share" else 1) * value)


def _digits(number: float) -> str:
    return f"{number:.4g}"


def _markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table whose first column is words and whose others are numbers."""
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))


def _escaped(text: str, say: Say) -> str:
    """Text on one line that Markdown takes for nothing but text."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in say(text))
    return "".join("\\" + c if c in "\\|*`<[" else c for c in line)
