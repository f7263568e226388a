"""The parameter panel: its fields, typed text, and error messages."""

from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.field import Field
from attn_tui.core.parameters import FIELD, FIELDS, Parameters
from attn_tui.tui.views.fields.panel import NAME, FieldEntry, applicable, field_rows, panel_lines, value_text
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from line_texts import text_of, texts_of

DEFAULT = Parameters()
LONGEST = replace(
    DEFAULT,
    d_k=16_384,
    components="student_t",
    degrees_of_freedom=1_000,
    scale="custom",
    multiplier=1.234_567_89e-6,
    mean_q=-99.123_456_789,
    seed=2**32 - 1,
)


def rows_of(parameters: Parameters, height: int, focus: str | None = None) -> list[Field | None]:
    return field_rows(parameters, 25, height, UNICODE, focus, None)


def shown(parameters: Parameters, width: int = 25, height: int = 36, **more: Any) -> list[str]:
    return texts_of(panel_lines(parameters, width, height, UNICODE, **more))


def test_only_fields_that_have_an_effect_are_shown() -> None:
    assert "multiplier" not in {field.name for field in applicable(DEFAULT)}
    assert "degrees_of_freedom" not in {field.name for field in applicable(DEFAULT)}
    of_other_rules = {"layer", "position", "context_factor", "gain", "sink_logit", "arithmetic"}
    of_other_rules |= {"temperature", "norm_gain"}
    assert {field.name for field in FIELDS} - {field.name for field in applicable(LONGEST)} == of_other_rules
    for scale, name in {"inverse_layer": "layer", "llama4_position": "position", "yarn": "context_factor"}.items():
        assert FIELD[name] in applicable(replace(LONGEST, scale=scale))


@pytest.mark.parametrize("height", [22, 36, 58])
def test_no_field_moves_when_a_choice_adds_one(height: int) -> None:
    usual = rows_of(DEFAULT, height)
    adding = [(field, choice) for field, choice in WORDS if field.name != "model"]
    added = set[str]()
    for field, choice in adding:
        rows = rows_of(with_choice(field, choice), height)
        assert rows[: len(usual)] == usual
        added |= {row.name for row in rows[len(usual) :] if row}
    assert {"multiplier", "layer", "context_factor", "sink_logit", "arithmetic", "degrees_of_freedom"} <= added


def test_each_field_is_on_the_line_that_a_click_selects() -> None:
    for parameters in (DEFAULT, LONGEST):
        for height in (14, 18, 22, 36):
            rows = rows_of(parameters, height)
            lines = shown(parameters, height=height)
            assert rows
            for field, line in zip(rows, lines, strict=False):
                if field is None:
                    assert not line.strip()
                else:
                    assert line.startswith(field.label[:NAME])
                    value = value_text(field, parameters)
                    assert line.rstrip().endswith(value[-10:])


def test_all_fields_fit_on_a_small_screen_and_their_groups_on_a_large_one() -> None:
    rows = rows_of(DEFAULT, 22)  # 24 lines less the bars
    assert tuple(field for field in rows if field is not None) == applicable(DEFAULT)
    assert len(rows) <= 22
    assert None not in rows_of(DEFAULT, 20)
    rows = rows_of(DEFAULT, 36)
    gaps = [at for at, field in enumerate(rows) if field is None]
    for at in gaps:
        before, after = rows[at - 1], rows[at + 1]
        assert before is not None
        assert after is not None
        assert before.group != after.group


@pytest.mark.parametrize("height", [5, 10, 18])
def test_if_not_all_fields_fit_those_around_the_cursor_are_shown(height: int) -> None:
    for field in applicable(LONGEST):
        rows = rows_of(LONGEST, height, field.name)
        assert field in rows
        assert len(rows) == height - height // 4  # the others are for its help


def test_the_field_with_the_cursor_has_arrows_and_is_explained_below() -> None:
    for field in applicable(DEFAULT):
        lines = shown(DEFAULT, width=22, height=21, focus=field.name)  # that of 80 × 24
        told = " ".join(line.strip() for line in lines[-5:])
        assert told.startswith(field.help[:40]) or field.help.startswith(told.strip())
        rows = field_rows(DEFAULT, 22, 21, UNICODE, field.name, None)
        assert f"{lines[rows.index(field)]}"[1:].startswith(field.label[1:9])
    lines = shown(DEFAULT, focus="n_keys")
    marked = [line for line in lines if "◂" in line]
    assert len(marked) == 1
    assert marked[0].startswith("keys")
    assert marked[0].rstrip().endswith("▸")
    assert "softmax runs over them" in " ".join(line.strip() for line in lines[-6:])
    assert not any("◂" in line or "softmax runs" in line for line in shown(DEFAULT))


def test_values_are_shown_as_they_are_typed_at_a_cursor() -> None:
    assert value_text(FIELD["scale"], DEFAULT) == "1/√d_k"
    assert value_text(FIELD["components"], LONGEST) == "Student t"
    assert value_text(FIELD["mean_q"], DEFAULT) == "0"
    assert value_text(FIELD["d_k"], LONGEST) == "16384"

    def line(text: str) -> str:
        return next(
            line
            for line in shown(DEFAULT, editing=FieldEntry("d_k", text, DEFAULT, DEFAULT))
            if line.startswith("d_k")
        )

    assert line("12").split() == ["d_k", "12_"]
    assert line("").split() == ["d_k", "_"]
    assert line("123456789012345678").rstrip().endswith("678_")  # the end of a long text


def test_an_error_message_replaces_the_help() -> None:
    reason = "d_k: must be a whole number from 1 to 16384"
    lines = panel_lines(DEFAULT, 25, 36, UNICODE, "d_k", FieldEntry("d_k", "0", DEFAULT, DEFAULT, reason))
    alerts = [text_of(line).strip() for line in lines if any(role == "alert" for _, role in line)]
    assert alerts[0].split() == ["d_k", "◂", "0_", "▸"]
    assert " ".join(alerts[1:]) == reason
    assert "Width of a query" not in " ".join(text_of(line) for line in lines)


@pytest.mark.parametrize("height", [18, 22])
def test_an_error_message_is_complete_on_small_screens(height: int) -> None:
    reason = "d_k: must be a whole number from 1 to 16384"
    lines = shown(DEFAULT, width=21, height=height, editing=FieldEntry("d_k", "99999", DEFAULT, DEFAULT, reason))
    assert "16384" in " ".join(lines)


WORDS = [(field, choice) for field in FIELDS for choice in field.choices]


def with_choice(field: Field, choice: str) -> Parameters:
    """Parameters with this choice, in a format in which it has an effect."""
    rounded = replace(DEFAULT, precision="bfloat16") if field.name == "arithmetic" else DEFAULT
    return rounded.with_value(field.name, choice)


@pytest.mark.parametrize("width", [21, 25])
def test_no_word_is_cut(width: int) -> None:
    for field, choice in WORDS:
        parameters = with_choice(field, choice)
        assert any(names(line, field, value_text(field, parameters)) for line in shown(parameters, width=width))
    for field, choice in WORDS:
        parameters = with_choice(field, choice)
        lines = texts_of(panel_lines(parameters, width, 36, ASCII))
        assert any(names(line, field, ASCII.say(value_text(field, parameters))) for line in lines)


def names(line: str, field: Field, text: str) -> bool:
    """Whether a line shows a field with this value; the title of a model may stand alone."""
    return text in line and (line.startswith(field.label) or (field.name == "model" and line.strip() == text))


def test_the_model_stands_first_and_says_when_something_it_set_was_changed() -> None:
    assert shown(DEFAULT)[0].split() == ["model", "–"]
    gemma = DEFAULT.with_value("model", "gemma-2-27b")
    assert shown(gemma)[0].split(maxsplit=1) == ["model", "Gemma 2 27B"]
    for name, value in (("d_k", 64), ("softcap", 0.0), ("scale", "sqrt_d_k"), ("n_keys", 128), ("sink", "logit")):
        assert shown(gemma.with_value(name, value), width=21)[0].strip() == "Gemma 2 27B, changed"
        assert shown(gemma.with_value(name, value), width=30)[0].startswith("model")
    assert shown(gemma.with_value("seed", 7))[0].split(maxsplit=1) == ["model", "Gemma 2 27B"]
    long = DEFAULT.with_value("model", "llama-3.1-405b").with_value("d_k", 64)
    assert shown(long, width=21)[0].strip() == "Llama 3.1 405B *"


def test_an_explanation_that_does_not_fit_ends_with_an_ellipsis() -> None:
    for height in range(12, 60):
        lines = [text.strip() for text in texts_of(panel_lines(Parameters(), 22, height, UNICODE, "mechanism"))]
        shown = " ".join(lines)
        if "How a query" in shown:
            assert "How a query" in shown
            assert lines[-1].endswith("…") or shown.endswith("variation.")
