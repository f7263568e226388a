"""The two dialects: programs are written for NumPy, and become PyTorch's by substitution.

PyTorch has NumPy's functions under NumPy's names, but for those of this table. Random numbers are always NumPy's, so
that both print the same. PyTorch's numbers are float32 by default, so a text says float64 where that matters.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["python", "torch"]  # as in --format: NumPy or PyTorch

_DTYPES = r"(float16|bfloat16|float8_\w+)"
_TABLE = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\.astype\(np\.float64\)", ".double()"),
        (r"\.astype\(np\.float32\)", ".float()"),
        (r"\.astype\(bool\)", ".bool()"),
        (r"\.astype\(int\)", ".long()"),
        (rf"\.astype\((?:np|ml_dtypes)\.{_DTYPES}\)", r".to(torch.\1)"),
        (r"\.(max|min)\((?=[-(\d])", r".a\1("),  # along an axis, PyTorch's max returns places too
        (r"\.(std|var)\(([^()]+)\)", r".\1(\2, correction=0)"),
        (r"\.(std|var)\(\)", r".\1(correction=0)"),
        (r"\bkeepdims=", "keepdim="),
        (r"\baxis=", "dim="),
        (r"\bnp\.array\(", "torch.tensor("),
        (r"\bnp\.concatenate\(", "torch.cat("),
        (r"\bnp\.take_along_axis\(", "torch.take_along_dim("),
        (r"\.transpose\(", ".permute("),
        (r"\bnp\.(?!random\b|load\b|lib\b)", "torch."),
    )
]
_NO_CODE = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*)""")  # strings and comments


def in_torch(text: str) -> str:
    """Return the lines of a NumPy program as PyTorch's; strings, such as names of files, stay as they are."""
    parts = _NO_CODE.split(text)
    for pattern, replacement in _TABLE:
        parts[::2] = [pattern.sub(replacement, part) for part in parts[::2]]
    return "".join(parts)


def code_of(text: str) -> str:
    """Return a program without its strings and comments."""
    return "".join(_NO_CODE.split(text)[::2])


def returning_tensor(text: str) -> str:
    """Return a function of NumPy that draws random numbers, with its array returned as PyTorch's tensor."""
    return re.sub(r"(?m)^( +return) (.+)$", r"\1 torch.from_numpy(\2)", text)
