"""Formulas such as `log(n)/sqrt(d)`: parsed to a tree, never evaluated as Python.

The grammar and the precedence are Python's: `-2^2` is −4, and `2^3^2` is 2^9. What the screen writes is read, too:
`^` is `**`, `ln n` is `log(n)`, and `÷√d_k` is `/sqrt(d)`.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, TypeAlias

from .errors import ParameterError
from .message import message

LONGEST = 80  # characters of a formula; also limits how deep parentheses nest
_LEAST, _MOST = math.ulp(0.0), sys.float_info.max  # of the numbers of a float that are not 0


def _of_arrays(scalar: Callable[..., float], name: str) -> Callable[..., Any]:
    """Return a function of numbers that is NumPy's of this name where an argument is an array."""

    def found(first: Any, *rest: Any) -> Any:
        if all(isinstance(operand, (int, float)) for operand in (first, *rest)):
            return scalar(first, *rest)
        import numpy as np  # loaded, if there are arrays

        function = getattr(np, name)
        return reduce(function, rest, first) if rest else function(first)

    return found


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": _of_arrays(math.log, "log"), "log2": _of_arrays(math.log2, "log2"), "sqrt": _of_arrays(math.sqrt, "sqrt"),
    "exp": _of_arrays(math.exp, "exp"), "min": _of_arrays(min, "minimum"), "max": _of_arrays(max, "maximum"),
}  # fmt: skip
_SEVERAL = ("min", "max")  # those of two or more arguments; the others take one
_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: a / b,
    "**": _of_arrays(math.pow, "power"),
}  # fmt: skip
_SAME = {  # other ways to write an operator, a function or a name
    "^": "**", "−": "-", "·": "*", "×": "*", "÷": "/", "√": "sqrt", "ln": "log", "d_k": "d", "n_keys": "n",
}  # fmt: skip
_TOKEN = re.compile(
    r" *(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\*\*|.))",
    re.ASCII | re.DOTALL,
)


class FunctionCall(NamedTuple):
    """A function or an operator, and its arguments."""

    function: str  # a key of FUNCTIONS, + - * / ** or, with one argument, -
    arguments: tuple[Tree, ...]


Tree: TypeAlias = "float | str | FunctionCall"  # a number, a name, or a call


class FormulaError(ParameterError):
    """A formula that cannot be parsed."""

    def __init__(self, label: str, reason: str, text: str, at: int) -> None:
        super().__init__(
            message("{label}: character {at} of {text!r}: {reason}", label=label, at=at + 1, text=text, reason=reason)
        )
        shown = "".join(c if c.isprintable() else "?" for c in text)
        self.pointer = f"{shown}\n{' ' * at}^"


class _Token(NamedTuple):
    kind: str  # number, name, sign or end
    text: str
    at: int


def parse(text: str, names: Sequence[str], label: str = "formula") -> Tree:
    """Return the tree of a formula of these names; raise FormulaError, which calls the formula `label`."""
    if len(text) > LONGEST:
        raise FormulaError(
            label,
            message("a formula must have at most {longest} characters", longest=LONGEST),
            text[: LONGEST + 1],
            LONGEST,
        )
    return _Parser(text, names, label).whole()


def accepted(names: Sequence[str]) -> str:
    """Return what a formula may contain, in words."""
    return message(
        "{names}, numbers, + - * / ^ ( ), and {functions}", names=", ".join(names), functions=", ".join(FUNCTIONS)
    )


def names_in(tree: Tree) -> set[str]:
    """Return the names that a formula contains."""
    if isinstance(tree, FunctionCall):
        return set[str]().union(*map(names_in, tree.arguments))
    return {tree} if isinstance(tree, str) else set()


def as_python(text: str, names: Mapping[str, str]) -> str:
    """Return a formula that `parse` accepts as a Python expression; `names` has the variables' names by its own.

    The functions are those of the module math, and the built-in min and max.
    """
    tokens = [*_tokens(text, names)]
    found = ""
    for before, token in pairwise([_Token("end", "", 0), *tokens]):
        match token.kind:
            case "number":
                number = float(token.text)
                word = str(int(number)) if number.is_integer() and number < 1e15 else repr(number)
            case "name":
                word = names.get(token.text, token.text)
            case _:
                word = token.text
        unary = token.text in ("+", "-") and (before.kind == "end" or (before.kind == "sign" and before.text != ")"))
        spaced = token.kind == "sign" and token.text in ("+", "-", "*", "/") and not unary
        found += f" {word} " if spaced else f"{word} " if token.text == "," else word
    return found


def function_of(tree: Tree, attributes: Mapping[str, str]) -> Callable[[object], float]:
    """Return a function that evaluates the formula with the attributes of an object that its names stand for.

    It raises ArithmeticError or ValueError where the formula has no value.
    """
    if isinstance(tree, str):
        return operator.attrgetter(attributes[tree])
    if not isinstance(tree, FunctionCall):
        return lambda _: tree
    parts = [function_of(argument, attributes) for argument in tree.arguments]
    if len(parts) == 1:
        (only,), one = parts, operator.neg if tree.function == "-" else FUNCTIONS[tree.function]
        return lambda values: one(only(values))
    call = _OPERATORS.get(tree.function) or FUNCTIONS[tree.function]
    if len(parts) == 2:
        first, second = parts
        return lambda values: call(first(values), second(values))
    return lambda values: call(*[part(values) for part in parts])


def split_outside_parentheses(text: str) -> list[str]:
    """Split a text at the commas that are not inside parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


class _Parser:
    """A recursive descent over the tokens of one formula."""

    def __init__(self, text: str, names: Sequence[str], label: str) -> None:
        self.text, self.names, self.label = text, names, label
        self.tokens = [*_tokens(text, names)]
        self.position = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def whole(self) -> Tree:
        tree = self.sum()
        if self.next.kind != "end":
            self.refuse(
                message("expected an operator") if self.next.kind != "sign" else message("unexpected character")
            )
        return tree

    def sum(self) -> Tree:
        return self.chain(("+", "-"), self.product)

    def product(self) -> Tree:
        return self.chain(("*", "/"), self.signed)

    def chain(self, operators: Sequence[str], operand: Callable[[], Tree]) -> Tree:
        """Parse operands joined by operators of equal precedence, from left to right."""
        tree = operand()
        while (sign := self.took(*operators)) is not None:
            tree = FunctionCall(sign, (tree, operand()))
        return tree

    def signed(self) -> Tree:
        match self.took("+", "-"):
            case "+":
                return self.signed()
            case "-":
                return FunctionCall("-", (self.signed(),))
            case _:
                return self.power()

    def power(self) -> Tree:
        base = self.atom()
        return base if self.took("**") is None else FunctionCall("**", (base, self.signed()))

    def atom(self) -> Tree:
        token = self.next
        if token.kind == "number":
            number = float(token.text)
            if math.isinf(number) or (not number and token.text.lower().partition("e")[0].strip("0.")):
                self.refuse(message("a number must be 0, or from {least:g} to {most:g}", least=_LEAST, most=_MOST))
            self.position += 1
            return number
        if token.kind == "name":
            return self.named(token)
        if self.took("(") is None:
            ended = token.kind == "end"
            self.refuse(message("the formula ends too early") if ended else message("expected a number, a name or ("))
        tree = self.sum()
        self.close()
        return tree

    def named(self, token: _Token) -> Tree:
        if token.text in self.names:
            self.position += 1
            return token.text
        if token.text not in FUNCTIONS:
            self.refuse(
                message(
                    "unknown name {text}; a formula contains {names}", text=token.text, names=accepted(self.names)
                )
            )
        self.position += 1
        if self.took("(") is None:
            self.refuse(message("expected ( after {text}", text=token.text))
        arguments = [self.sum()]
        while token.text in _SEVERAL and self.took(",") is not None:
            arguments.append(self.sum())
        if len(arguments) == 1 and token.text in _SEVERAL:
            self.refuse(message("expected a comma: {text} takes two or more numbers", text=token.text))
        self.close()
        return FunctionCall(token.text, tuple(arguments))

    def close(self) -> None:
        if self.took(")") is None:
            self.refuse(message("expected an operator or )"))

    def took(self, *signs: str) -> str | None:
        """Return the next token and go on, if it is one of these signs."""
        kind, text, _ = self.next
        if kind != "sign" or text not in signs:
            return None
        self.position += 1
        return text

    def refuse(self, reason: str) -> NoReturn:
        raise FormulaError(self.label, reason, self.text, self.next.at)


def _tokens(text: str, names: Container[str]) -> Iterator[_Token]:
    """Yield the tokens of a formula; a number or a name after a function stands in parentheses."""
    at, end, bare = 0, len(text.rstrip(" ")), False
    while at < end:
        match = _TOKEN.match(text, at)
        assert match is not None, "the rest is not blank"
        assert match.lastgroup is not None
        found, start = match[match.lastgroup], match.start(match.lastgroup)
        word = found if found in names else _SAME.get(found, found)
        kind = "name" if word in FUNCTIONS else match.lastgroup
        argument = bare and kind != "sign" and word not in FUNCTIONS
        yield from [_Token("sign", "(", start)] * argument
        yield _Token(kind, word, start)
        yield from [_Token("sign", ")", match.end())] * argument
        bare = word in FUNCTIONS and word not in _SEVERAL
        at = match.end()
    yield _Token("end", "", end)
