"""`for_each`: many cheap cases as one test, which saves most of what thousands of tests cost. `present`: no None."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

Test = Callable[..., None]
T = TypeVar("T")


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test with every case, as `pytest.mark.parametrize` does, but in one test; a failure notes its case.

    Fixtures are shared by all cases.
    """
    every = [(case,) if isinstance(names, str) else tuple(case) for case in cases]
    keys = (names,) if isinstance(names, str) else names

    def of_every(test: Test) -> Test:
        @wraps(test)
        def run(**given: Any) -> None:
            for case in every:
                named = dict(zip(keys, case, strict=True))
                try:
                    test(**given, **named)
                except BaseException as error:
                    error.add_note(f"with {named}")
                    raise

        whole = signature(test)
        left = [kind for name, kind in whole.parameters.items() if name not in keys]
        run.__dict__["__signature__"] = whole.replace(parameters=left)  # by which pytest finds the fixtures
        return run

    return of_every


def present(value: T | None) -> T:
    """Return what a test expects to exist."""
    assert value is not None
    return value
