"""PyTorch, or a reason to skip: `make test-torch` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import torch as torch
else:
    torch = pytest.importorskip("torch", reason="the recorder needs PyTorch: make test-torch")
