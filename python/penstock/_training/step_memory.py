"""What the steps of a module take of its device's memory, and what is given up
where that is not enough."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from .._memory.peak import peak_bytes
from .._memory.shortage import is_shortage
from .._memory.slices import sliced
from .._memory.snapshot import RandomState, Tensors
from ..errors import Error, OutOfMemory, refused, worded
from .division import rows_in
from .optimiser import Optimiser

#: Bytes of parameters (with buffers), gradients, the optimizer's state
#: (averages included), and all else.
Bytes = tuple[int, int, int, int]
WHOLE = (1 << 63) - 1  # a micro-batch of any batch


def shortage_in(error: BaseException) -> OutOfMemory | None:
    """The error of a shortage, without what was raised: its frames hold
    tensors. None for any other error."""
    if isinstance(error, OutOfMemory):
        return worded(OutOfMemory, error.code, error.what, error.where,
                      error.why, error.next)
    if isinstance(error, Error) or not is_shortage(error):
        return None
    lines = str(error).splitlines() or [type(error).__name__]
    return worded(OutOfMemory, "model.out_of_memory",
                  "out of memory while a step was taken", "torch", lines[0],
                  "use a smaller loader.batch_size")


class StepMemory:
    """Called by the stepper, and by the engine between steps, which sets
    `micro_batch` before each call."""

    def __init__(self, torch: Any, module: Any, optimiser: Optimiser,
                 facts: Mapping[str, Any]) -> None:
        learning = facts["learning"]
        asked = learning.get("micro_batch")
        self._torch, self._module, self._optimiser = torch, module, optimiser
        self._device = torch.device(facts["device"])
        self._made_up = facts.get("made_up")
        self._oom, self._least = learning["oom"], learning["micro_batch_min"]
        self._accumulates = int(learning["accumulate"]) > 1
        self.micro_batch = asked if isinstance(asked, int) else WHOLE
        """Rows that go through the module at once, at most."""
        self.validation_rows = WHOLE
        self.learn: Callable[[Mapping[str, Any]], Any] = lambda tensors: None
        """Forward and backward of a batch, in micro-batches."""
        self.rows_at_hand: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self._events: list[tuple[int, int, int, str, bool]] = []
        self._recomputes = False
        self._step = 0
        self._halved_at = self._emptied_at = -1
        self._activations = self._most = 0
        self._measured = (WHOLE, 0)  # a micro-batch, and most rows at once

    # -- what steps take

    def fixed(self) -> Bytes:
        named = [*self._module.parameters(), *self._module.buffers()]
        learned = sum(one.nbytes for one in self._module.parameters()
                      if one.requires_grad)
        return (sum(one.nbytes for one in named),
                learned * (2 if self._accumulates else 1),
                self._optimiser.held_bytes(), 0)

    def measured(self, step: int, rows: int, work: Callable[[], Any]) -> Any:
        """Calls `work`, a step. On the host its memory is counted where more
        rows than ever before go through the module at once: counting takes
        time. A GPU counts by itself."""
        self._step = step
        at_once = min(self.micro_batch, rows)
        micro, most = self._measured
        known = micro == self.micro_batch and at_once <= most
        if known or self._device.type != "cpu" or self._profiling():
            return work()
        answer: list[Any] = []
        peak = peak_bytes(lambda: answer.append(work()), self._device)
        self._measured = self.micro_batch, at_once
        self._activations = max(0, peak - self._learned_bytes())
        self._most = max(self._most, self._activations)
        return answer[0]

    def _profiling(self) -> bool:
        return bool(self._torch.autograd._profiler_enabled())

    def _learned_bytes(self) -> int:
        return sum(one.nbytes for one in self._module.parameters()
                   if one.requires_grad)

    def take_peak(self) -> Bytes:
        if self._device.type == "cuda":
            most = int(self._torch.cuda.max_memory_allocated(self._device))
            self._torch.cuda.reset_peak_memory_stats(self._device)
            self._activations = max(0, most - sum(self.fixed()))
            self._most = max(self._most, self._activations)
        return (*self.fixed()[:3], self._activations)

    def peak(self) -> Bytes:
        self.take_peak()
        return (*self.fixed()[:3], self._most)

    def try_step(self, rows: int) -> Bytes:
        made = self._rows(rows)
        state = RandomState(one.device for one in self._module.parameters())
        buffers = Tensors(self._module.buffers())
        earlier = self._optimiser.set_aside(False)
        short: OutOfMemory | None = None
        peak = 0
        try:
            peak = peak_bytes(lambda: self.learn(made), self._device)
        except Exception as error:
            short = shortage_in(error)
            if short is None:
                raise
        finally:
            self._optimiser.put_back(earlier)
            buffers.restore()
            state.restore()
        if short is not None:
            raise short
        return (*self.fixed()[:3], max(0, peak - self._learned_bytes()))

    def _rows(self, rows: int) -> dict[str, Any]:
        """Made-up rows, as long as the longest: zeros, and ones where a tensor
        says what counts."""
        if self._made_up is None:
            raise refused(
                "model.no_memory", "cannot estimate the memory of a step", "model",
                "the rows were not scanned, so how long they are is not known",
                'keep the rows: "loader": {"cache": "ram"}')
        made = {}
        for one in self._made_up:
            dtype = getattr(self._torch, one["dtype"])
            counts = dtype == self._torch.bool or one["name"].endswith("_mask")
            if one["offsets"]:
                made[one["name"]] = self._torch.arange(
                    0, (rows + 1) * one["offsets"], one["offsets"], dtype=dtype,
                    device=self._device)
                continue
            made[one["name"]] = self._torch.full(
                [rows, *one["shape"]], one["lengths"] or int(counts),
                dtype=dtype, device=self._device)
        return made

    # -- what is given up

    def give_way(self, step: int, rows: int) -> bool:
        """Gives up the next thing after a step that ran out of memory; False
        where nothing is left."""
        self._step = step
        now = min(self.micro_batch, rows)
        if self._emptied_at != step:
            self._emptied_at = step
            if self._empty_cache():
                return self._gave(now, now, "allocator_cache")
        helps = (self._halved_at != step or not self._can_recompute()
                 or self._halving_helps(now))
        if helps and self._halve(step, now):
            return True
        if self._can_recompute():
            self._recompute()
            return self._gave(now, now, "gradient_checkpointing")
        return not helps and self._halve(step, now)

    def _gave(self, before: int, after: int, action: str,
              exact: bool = True) -> bool:
        self._events.append((self._step, before, after, action, exact))
        return True

    def take_events(self) -> list[tuple[int, int, int, str, bool]]:
        events, self._events = self._events, []
        return events

    def row_alone(self) -> int:
        """The row of the last batch that did not fit by itself, or -1."""
        begin, end = self.rows_at_hand()
        return begin if end - begin == 1 else -1

    def _empty_cache(self) -> bool:
        if self._device.type != "cuda":
            return False
        before = self._torch.cuda.memory_reserved(self._device)
        self._torch.cuda.empty_cache()
        return bool(self._torch.cuda.memory_reserved(self._device) < before)

    def _halve(self, step: int, rows: int) -> bool:
        begin, end = self.rows_at_hand()
        exact = not self._normalises()
        if rows <= self._least or end - begin <= 1 or \
                (not exact and self._oom == "exact"):
            return False
        self.micro_batch = max(self._least, _half(rows))
        self._halved_at = step
        return self._gave(rows, self.micro_batch, "micro_batch", exact)

    def _normalises(self) -> bool:
        return any(isinstance(one, self._torch.nn.modules.batchnorm._BatchNorm)
                   and one.training for one in self._module.modules())

    def _halving_helps(self, rows: int) -> bool:
        """Whether two halves take less than all rows at once: the second adds
        its gradients to those of the first. By trials of made-up rows."""
        micro = self.micro_batch

        def total(at_once: int) -> int | None:
            self.micro_batch = at_once
            try:
                return sum(self.try_step(rows))
            except Exception:  # of the module's code, for rows it never saw
                return None
        whole = None
        while rows >= 2 and whole is None:
            whole = total(rows)
            rows = rows if whole is not None else rows // 2
        halves = total(rows // 2) if whole is not None else None
        self.micro_batch = micro
        return whole is None or halves is not None and halves < whole

    def _can_recompute(self) -> bool:
        """Models of Transformers have a switch for it."""
        return not getattr(self._module, "is_gradient_checkpointing", True)

    def _recompute(self) -> None:
        self._module.gradient_checkpointing_enable()
        self._recomputes = True

    # -- validation

    def looked(self, tensors: Mapping[str, Any], samples: list[int],
               look: Callable[[Mapping[str, Any], list[int]], None]) -> None:
        """Gives `look` all rows, in halves where memory is short."""
        rows, begin = rows_in(tensors), 0
        whole = rows != len(samples)  # packed: a batch cannot be cut
        while begin < rows:
            size = min(self.validation_rows, rows - begin)
            part = tensors if whole or size == rows else \
                sliced(tensors, begin, begin + size)
            short = self._looked(part, samples if whole else
                                 samples[begin:begin + size], look)
            if short is None:
                begin += rows if whole else size
                continue
            if size == 1 or whole or self._oom == "stop":
                raise short
            self.validation_rows = _half(size)
            self._gave(size, self.validation_rows, "validation_rows")

    def _looked(self, part: Mapping[str, Any], samples: list[int],
                look: Callable[[Mapping[str, Any], list[int]], None]
                ) -> OutOfMemory | None:
        try:
            look(part, samples)
            return None
        except Exception as error:
            short = shortage_in(error)
            if short is None:
                raise
        return short

    # -- state

    def state(self) -> dict[str, Any]:
        """What a shortage has changed, for a run that is resumed."""
        state: dict[str, Any] = {}
        if self.micro_batch != WHOLE:
            state["micro_batch"] = self.micro_batch
        if self.validation_rows != WHOLE:
            state["validation_rows"] = self.validation_rows
        if self._recomputes:
            state["gradient_checkpointing"] = True
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        self.micro_batch = min(self.micro_batch,
                               state.get("micro_batch", WHOLE))
        self.validation_rows = min(self.validation_rows,
                                   state.get("validation_rows", WHOLE))
        if state.get("gradient_checkpointing") and self._can_recompute():
            self._recompute()


def _half(rows: int) -> int:
    """The power of two below.

    >>> [_half(rows) for rows in (2, 3, 4, 5, 256)]
    [1, 2, 2, 4, 128]
    """
    return 1 << ((rows - 1).bit_length() - 1)
