"""The saved state of a loader: where its loop stands, in which order
of which data set."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Mapping

from ..errors import Error, refused

MASK = (1 << 64) - 1
_VERSION = 1
_MOST_COUNTED = 1 << 53  # epochs and steps, as in the states of penstock.Loader
_LOST = "?"  # after the order of a state from which no loader can resume
LOST_ORDER = ("the generator's seed cannot restore the order, since other code "
              "also used the generator or an earlier epoch was ended early")


@dataclasses.dataclass(frozen=True)
class State:
    """`samples` is -1 where a data set has no length, `batch_size` 0 where the
    loader has none. `lost`: the order cannot be drawn again."""

    epoch: int
    step: int
    seed: int
    samples: int
    batch_size: int
    order: str
    lost: bool = False

    def saved(self) -> dict[str, Any]:
        """At most 128 bytes of JSON."""
        return {"v": _VERSION, "epoch": self.epoch, "step": self.step,
                "seed": self.seed, "n": self.samples, "batch": self.batch_size,
                "order": self.order + _LOST * self.lost}

    def check_resumes_in(self, now: State) -> None:
        """Raises RequestError where a loader of the state `now` has another
        order or data set, or this state's order is lost."""
        if self.lost:
            raise _refused(
                "other_order", LOST_ORDER, "give the loader its own generator "
                "and run its epochs to the end; set_epoch() continues with "
                "another order")
        was, found = ((state.batch_size, state.order) for state in (self, now))
        if was != found:
            raise _refused(
                "other_order",
                f"batch_size and order were {was}, and are now {found}",
                "resume with the arguments of the saved loader")
        if self.samples != now.samples:
            raise _refused(
                "other_data", f"the data set had {self.samples} samples, and "
                f"has {now.samples} now", "restore the old data, or start again")

    def check_seed(self, seed: int | None) -> None:
        """Raises RequestError where a loader was given another seed."""
        if self.seed != seed:
            raise _refused(
                "other_order", f"the seed was {self.seed}, and is now {seed}",
                "pass no seed, or the seed of the saved loader")


def state_of(saved: Mapping[str, Any]) -> State:
    """Raises RequestError for what `State.saved` did not make."""
    try:
        version, epoch, step, seed, samples = (
            operator.index(saved[name])
            for name in ("v", "epoch", "step", "seed", "n"))
        batch_size, order = saved["batch"], saved["order"]
        if version != _VERSION or not (0 <= epoch <= _MOST_COUNTED and
                                       0 <= step <= _MOST_COUNTED and
                                       0 <= seed <= MASK):
            raise ValueError(f"version {version}, epoch {epoch}, step {step}, "
                             f"seed {seed}")
    except (TypeError, KeyError, ValueError) as error:
        raise _refused("no_state",
                       f"this is not the state of a loader: {error!r}",
                       "pass the result of state_dict()") from None
    text = str(order)
    return State(epoch, step, seed, samples, batch_size,
                 text.removesuffix(_LOST), text.endswith(_LOST))


def _refused(code: str, why: str, next: str) -> Error:
    return refused(f"resume.{code}", "cannot resume", "load_state_dict", why,
                   next)
