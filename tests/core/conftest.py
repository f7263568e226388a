"""Fixtures for tests of the core."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def one_blas_thread() -> Iterator[None]:
    """As in the app: with one thread, BLAS gives the same numbers in every thread."""
    from attn_tui.core import blas  # after tests/conftest.py has set the number of threads

    with blas.one_blas_thread():
        yield
