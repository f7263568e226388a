"""Values and outputs of a layer whose weights meet the values in parts, or in another order than the scores'."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from .layout import TensorLayout
from .placement import Placement


@dataclass
class Outputs:
    """The values and outputs of the kept rows, as far as products of weights and values gave them."""

    layout: TensorLayout
    keys: int
    rows: torch.Tensor  # the kept queries, by number
    batch: int  # the kept texts
    keep: bool  # whether values and outputs are kept, and not only what was seen of them
    v: torch.Tensor | None = None  # [batch, heads, keys, d_v]
    o: torch.Tensor | None = None  # [batch, heads, rows, d_v]
    _matrices: torch.Tensor = field(init=False)  # [batch, heads], the number of each canonical matrix
    _has_keys: torch.Tensor = field(init=False)  # [batch, heads, keys]
    _has_rows: torch.Tensor = field(init=False)  # [batch, heads, rows]

    def __post_init__(self) -> None:
        layout = self.layout
        every = torch.arange(layout.outer * layout.heads * layout.inner)
        every = every.reshape(layout.outer, layout.heads, layout.inner).transpose(1, 2).flatten(0, 1)
        self._matrices = every[: self.batch]
        self._has_keys = torch.zeros(*self._matrices.shape, self.keys, dtype=torch.bool)
        self._has_rows = torch.zeros(*self._matrices.shape, len(self.rows), dtype=torch.bool)

    @property
    def complete(self) -> bool:
        """Whether all kept rows have met all keys."""
        return bool(self._has_keys.all()) and bool(self._has_rows.all())

    def real(self, place: Placement) -> torch.Tensor:
        """Return whether each column of a view is a key, and neither a sink nor padding: [matrices or 1, columns]."""
        return (place.keys >= 0) & (place.keys < self.keys)

    def add_values(self, place: Placement, values: torch.Tensor) -> bool:
        """Take the values [matrices, columns, d_v] that weights meet; return whether they fit those taken before.

        Columns of no key must have values of 0.
        """
        real, fit = self.real(place), True
        owners = torch.where(place.rows >= 0, place.rows.div(self.layout.queries, rounding_mode="floor"), -1)
        if self.keep and self.v is None:
            self.v = values.new_zeros(*self._matrices.shape, self.keys, values.shape[-1])
        for text, head in torch.cartesian_prod(*map(torch.arange, self._matrices.shape)).tolist():
            for matrix in (owners == self._matrices[text, head]).any(dim=-1).nonzero()[:, 0].tolist():
                row = matrix if len(place.keys) > 1 else 0
                columns, keys = real[row].nonzero()[:, 0], place.keys[row][real[row]]
                if self.v is not None:
                    fit = self._put(self.v[text, head], values[matrix], columns, keys, (text, head)) and fit
                self._has_keys[text, head, keys] = True
        return fit

    def _put(
        self, kept: torch.Tensor, given: torch.Tensor, columns: torch.Tensor, keys: torch.Tensor, at: tuple[int, int]
    ) -> bool:
        """Write values of these columns to these keys, and return whether they fit."""
        if kept.shape[-1] != given.shape[-1]:
            return False
        before, device = self._has_keys[at][keys], given.device
        new, place = given[columns.to(device)], keys.to(device)
        same = torch.equal(kept[place][before.to(device)], new[before.to(device)])
        kept[place] = new.to(kept.dtype)
        others = torch.ones(len(given), dtype=torch.bool)
        others[columns] = False
        return same and not bool(given[others.to(device)].any())

    def add_outputs(self, place: Placement, out: torch.Tensor) -> None:
        """Take the outputs [matrices, rows, d_v] of weights that have met all keys."""
        layout = self.layout
        flat = place.rows.reshape(-1)
        known = flat >= 0
        offsets = torch.full((layout.outer * layout.heads * layout.inner * layout.queries,), -1, dtype=torch.int64)
        offsets[flat[known]] = known.nonzero()[:, 0]
        wanted = offsets[self._matrices[..., None] * layout.queries + self.rows]
        hit = wanted >= 0
        self._has_rows |= hit
        if not self.keep:
            return
        kept = out.new_zeros(*hit.shape, out.shape[-1]) if self.o is None else self.o
        self.o = kept
        kept[hit.to(out.device)] = out.reshape(-1, out.shape[-1])[wanted[hit].to(out.device)]
