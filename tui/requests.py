"""What people may ask for on the command line: a request for each command, and OpenApp for none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..core.attention.cost import Layer
from ..core.attention.handful import Handful
from ..core.attention.presets import Preset
from ..core.lab.grid import parse_grid, parse_values
from ..core.lab.rule_rows import Order
from ..core.parameters import FIELD, Parameters, Value
from .usage import OpenApp

if TYPE_CHECKING:  # which loads NumPy
    from ..core.lab.sweep import Target

Format: TypeAlias = Literal["table", "json", "csv", "markdown"]


@dataclass(frozen=True)
class Output:
    """How a result is written, and where: None is stdout."""

    format: Format = "table"
    path: Path | None = None


@dataclass(frozen=True)
class Report:
    """attn-tui report"""

    parameters: Parameters
    output: Output = Output()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inspect:
    """attn-tui inspect; with neither layer nor head, every head."""

    file: Path
    layer: str | None = None
    head: int | None = None
    scale: str | None = None  # a name of SCALE_RULES; None and "file" are the file's own
    multiplier: float = 1.0
    axes: str | None = None
    output: Output = Output()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claims:
    """attn-tui claims"""

    output: Output = Output()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """attn-tui cost; the preset is where the layer was started from."""

    layer: Layer
    preset: Preset | None = None
    output: Output = Output()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Softmax:
    """attn-tui softmax"""

    handful: Handful
    parameters: Parameters  # for their scale rule and number format
    output: Output = Output()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sweep:
    """attn-tui sweep"""

    parameters: Parameters  # whatever their d_k
    grid: str  # of d_k, as it was typed
    values: tuple[str, str] | None = None  # the second axis: a parameter, and its values as they were typed
    statistics: tuple[str, ...] = ()  # those asked for; none are those that a format shows unless it is told
    target: Target | None = None
    output: Output = Output()
    remarks: tuple[str, ...] = ()

    @property
    def d_ks(self) -> tuple[int, ...]:
        """The values of d_k, in rising order."""
        return parse_grid(self.grid)

    @property
    def vary(self) -> tuple[str, tuple[Value, ...]] | None:
        """The second axis, as a sweep takes it."""
        return self.values and (self.values[0], parse_values(self.values[1], FIELD[self.values[0]]))

    @property
    def questions(self) -> list[Parameters]:
        """The parameters at each value of the second axis."""
        return [self.parameters.with_value(self.vary[0], v) for v in self.vary[1]] if self.vary else [self.parameters]


@dataclass(frozen=True)
class Rules:
    """attn-tui rules; the parameters' own rule is the one that is marked."""

    parameters: Parameters
    order: Order = field(default_factory=Order)
    mechanisms: bool = False  # compare mechanisms over d_k, in place of scale rules
    output: Output = Output()
    remarks: tuple[str, ...] = ()


Request: TypeAlias = OpenApp | Report | Inspect | Claims | Cost | Softmax | Sweep | Rules
