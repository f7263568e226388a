"""Formulas: values as Python's own arithmetic gives them, and errors that point at the character."""

import math
from types import SimpleNamespace

import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.formula import LONGEST, FormulaError, FunctionCall, Tree, function_of, names_in, parse
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

NAMES = {"d": "d_k", "n": "n_keys", "layer": "layer", "pos": "position"}
SETTING = SimpleNamespace(d_k=64, n_keys=128, layer=11, position=7)
VALUES = {name: getattr(SETTING, attribute) for name, attribute in NAMES.items()}
PYTHON = {"log": math.log, "log2": math.log2, "sqrt": math.sqrt, "exp": math.exp, "min": min, "max": max}


def value(text: str) -> float:
    return function_of(parse(text, [*NAMES]), NAMES)(SETTING)


def in_python(text: str) -> float | complex:
    """Python's own value of a formula in Python's notation, with floats where the formula has numbers."""
    return eval(text, {"__builtins__": {}}, {**PYTHON, **{n: float(v) for n, v in VALUES.items()}})


atoms = (
    st.sampled_from([*NAMES]) | st.floats(0, 1e3).map(repr) | st.integers(0, 999).map(lambda number: f"{number}.0")
)


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(parts, st.sampled_from(["+", "-", "*", "/", " ** ", " - "]), parts).map("".join)
    one = st.tuples(st.sampled_from(["log", "log2", "sqrt", "exp", ""]), parts).map(lambda p: f"{p[0]}({p[1]})")
    two = st.tuples(st.sampled_from(["min", "max"]), parts, parts).map(lambda p: f"{p[0]}({p[1]}, {p[2]})")
    return binary | one | two | parts.map(lambda part: f"-{part}")


formulas = st.recursive(atoms, _joined, max_leaves=6).filter(lambda text: len(text) <= LONGEST)


@given(formulas)
def test_a_formula_has_the_value_that_python_gives_it(text: str) -> None:
    try:
        expected = in_python(text)
    except (ArithmeticError, ValueError):
        expected = None
    if isinstance(expected, complex):
        expected = None  # the root of a negative number: no value here
    try:
        found = value(text)
    except (ArithmeticError, ValueError):
        found = None
    if expected is None or found is None:
        assert found is expected
    else:
        assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


@given(formulas)
def test_a_caret_is_another_way_to_write_a_power(text: str) -> None:
    assert parse(text.replace("**", "^"), [*NAMES]) == parse(text, [*NAMES])


@for_each(
    ("text", "expected"),
    [
        ("log(n)/sqrt(d)", math.log(128) / 8),
        ("1/sqrt(d*(layer+1))", 1 / math.sqrt(64 * 12)),
        ("0.43*log(n)/d^.5", 0.43 * math.log(128) / 8),
        ("-2^2", -4),
        ("2^3^2", 512),
        ("2**-1", 0.5),
        ("8/4/2", 1),
        ("8-4-2", 2),
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("--+5", 5),
        ("max(1, pos, 3)", 7),
        ("min(1/8, 1e-1)", 0.1),
        ("log2(2·4×2÷2) − 1", 2),
        (" 1.e2 ", 100),
    ],
)
def test_precedence_and_functions(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected, rel=1e-15)


def test_the_tree_names_what_the_formula_depends_on() -> None:
    tree: Tree = parse("log(n) / max(d, 2)", [*NAMES])
    assert tree == FunctionCall("/", (FunctionCall("log", ("n",)), FunctionCall("max", ("d", 2.0))))
    assert names_in(tree) == {"n", "d"}
    assert names_in(parse("exp(1)", [*NAMES])) == set()


@pytest.mark.parametrize("text", ["0e5", "0.00", ".0E-999"])
def test_zero_is_a_number_however_it_is_written(text: str) -> None:
    assert value(text) == 0


@for_each(
    ("text", "at", "reason"),
    [
        ("", 0, "ends too early"),
        ("log(n)/", 7, "ends too early"),
        ("log(n)/sqr(d)", 7, "unknown name sqr; a formula contains d, n, layer, pos, numbers"),
        ("1/d_v", 2, "unknown name d_v"),
        ("(log(n)", 7, "expected an operator or )"),
        ("log", 3, "expected ( after log"),
        ("√√n", 1, "expected ( after sqrt"),
        ("2d", 1, "expected an operator"),
        ("min(1e999, 0.125)", 4, "a number must be 0, or from 4.94066e-324 to 1.79769e+308"),
        ("1/1E-999", 2, "a number must be 0"),
        ("1/*d", 2, "expected a number, a name or ("),
        ("d)", 1, "unexpected character"),
        ("1/d%2", 3, "unexpected character"),
        ("max(d)", 5, "takes two or more numbers"),
        ("log(1, 2)", 5, "expected an operator or )"),
        ("d.real", 1, "unexpected character"),
        ("__import__('os')", 0, "unknown name __import__"),
        ("1 if d else 2", 2, "expected an operator"),
        ("(" * 200, LONGEST, "at most 80 characters"),
    ],
)
def test_an_error_points_at_the_character(text: str, at: int, reason: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse(text, [*NAMES], "scale")
    message, (shown, caret) = str(caught.value), caught.value.pointer.split("\n")
    assert message.startswith(f"scale: character {at + 1} of ")
    assert reason in message
    assert "\n" not in message
    assert caret == " " * at + "^"
    assert text.startswith(shown[:at])


@given(st.text("dn1.()+-*/^, logexpsqrtminax2\x1b\u2003é", max_size=100))
def test_any_text_is_a_formula_or_refused_in_one_line(text: str) -> None:
    caught: ParameterError | None = None
    try:
        function_of(parse(text, [*NAMES]), NAMES)(SETTING)
    except ParameterError as error:
        caught = error
    except (ArithmeticError, ValueError):
        pass  # it has no value at this setting
    if caught is not None:
        assert len(str(caught).splitlines()) == 1
        assert len(caught.pointer.splitlines()) == 2


def test_the_deepest_formula_is_parsed_and_evaluated() -> None:
    assert value("(" * 39 + "d" + ")" * 39) == 64
    assert value("-" * 79 + "d") == -64


@for_each("text", ["d\n", "\nd", "1/\td", "d\u2003", "d\x0b", "log(n)\r/d"])
def test_only_blanks_separate_so_that_a_formula_is_one_line_everywhere(text: str) -> None:
    with pytest.raises(FormulaError, match=r"unexpected character|expected"):
        parse(text, [*NAMES])
    assert value(" 1 / d ") == 1 / 64
