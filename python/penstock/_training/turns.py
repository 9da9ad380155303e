"""How ranks share the validation rows, and what they must agree on."""

from __future__ import annotations

import hashlib
import io
from typing import Any, Iterable, Mapping

from ..errors import DeviceError, worded
from .ranks import Group
from .saving import Saved


class Turns:
    """Each batch of held-out rows, which all ranks have read, is cut into a
    part for each of them. Packed batches, which have no rows to cut, are taken
    in turn.

    `all_call`: the module may only be called by all ranks together, so that a
    rank without a part calls it, too, and does not look at the answer.
    """

    def __init__(self, ranks: Group, all_call: bool) -> None:
        self._ranks, self._all_call = ranks, all_call

    def part_of(self, rows: int, tensors: Mapping[str, Any], ids: list[int],
                number: int) -> tuple[Mapping[str, Any] | None, list[int],
                                      bool]:
        """Tensors for the module, or None; their rows' ids; and whether this
        rank looks at them."""
        rank, world = self._ranks.rank, self._ranks.world
        if any(each.shape[:1] != (rows,) for each in tensors.values()):
            mine = number % world == rank
            return tensors if mine or self._all_call else None, ids, mine
        begin, end = rows * rank // world, rows * (rank + 1) // world
        looks = begin < end
        if not looks and not self._all_call:
            return None, [], False
        if not looks:
            begin, end = 0, 1
        return ({name: each[begin:end] for name, each in tensors.items()},
                ids[begin:end], looks)

    def shared(self, torch: Any, mine: Any) -> list[Any]:
        """What each rank has seen: tensors, numbers and lists."""
        text = io.BytesIO()
        torch.save(mine, text)
        return [torch.load(io.BytesIO(each), weights_only=True)
                for each in self._ranks.gather(text.getvalue())]

    def check_same(self, weights: Iterable[Saved]) -> None:
        """Raises DeviceError where a rank has other bytes than rank 0."""
        mine = hashlib.sha256()
        for _, _, _, data in weights:
            mine.update(data)
        all_of_them = self._ranks.gather(mine.hexdigest().encode())
        for rank, other in enumerate(all_of_them):
            if other != all_of_them[0]:
                raise worded(
                    DeviceError, "ranks.differ",
                    "the ranks do not hold the same weights",
                    f"rank {rank} on {self._ranks.hosts[rank]}",
                    f"the SHA-256 of its weights is {other.decode()}, that of "
                    f"rank 0 {all_of_them[0].decode()}",
                    "check the memory of that machine ('penstock doctor'), "
                    "then start all ranks again with --resume latest")
