"""A training step that survives a shortage of memory."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

from ..errors import OutOfMemory, refused, worded
from .ranks import RankGroup
from .reduction import reduction_of
from .shortage import is_shortage
from .slices import rows_of, sliced, tensors_of
from .snapshot import RandomState, Tensors

if TYPE_CHECKING:
    import torch
else:
    from .late_torch import torch


class MicroBatch:
    """Rows [`begin`, `end`) of a batch: `batch` holds their tensors, as views.
    A context manager: a shortage of memory inside it is not raised."""

    def __init__(self, guard: OomGuard, batch: Any, begin: int, end: int
                 ) -> None:
        self.batch, self.begin, self.end = batch, begin, end
        self._guard = guard
        self._scope = contextlib.ExitStack()
        self.weight: float | torch.Tensor | None = None  # of backward()
        self.short: str | None = None
        self.total: torch.Tensor | None = None  # the sum of its loss
        self.given = "sum"  # what backward() was told that its loss is
        self.only_looks = False  # backward() adds no gradients

    @property
    def rows(self) -> int:
        return self.end - self.begin

    def backward(self, loss: torch.Tensor,
                 weight: float | torch.Tensor | None = None, *,
                 reduction: str = "sum") -> None:
        """Adds the gradients of a loss.

        `loss`: a scalar, the sum over the micro-batch. `weight`: what step()
        divides the gradients by, summed over all micro-batches and ranks: the
        number of rows (default), or of tokens that count. `reduction="mean"`:
        `loss` is the mean over `weight` instead.
        """
        if loss.dim() != 0:
            raise refused("memory.loss", "cannot use the loss", "backward()",
                          f"found shape {tuple(loss.shape)}, expected a scalar",
                          "pass the sum over the micro-batch: loss.sum()")
        if reduction not in ("sum", "mean"):
            raise refused("memory.loss", "cannot use the loss", "reduction",
                          f"found {reduction!r}", 'pass "sum" or "mean"')
        if self.weight is not None:
            raise refused("memory.loss", "cannot use the loss", "backward()",
                          "this micro-batch already has a loss",
                          "add the losses of a micro-batch, and call backward() "
                          "once")
        weight = self.rows if weight is None else weight
        total = loss * weight if reduction == "mean" else loss
        scaler = self._guard.scaler
        if not self.only_looks:
            (total if scaler is None else scaler.scale(total)).backward()
        self.weight, self.given = weight, reduction
        self.total = total.detach()

    def __enter__(self) -> MicroBatch:
        for no_sync in self._guard.no_syncs:
            self._scope.enter_context(no_sync())
        if self.only_looks:
            self._scope.enter_context(torch.no_grad())
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 traceback: TracebackType | None) -> bool:
        self._scope.close()
        if error is None:
            if self.weight is None:
                raise refused("memory.loss", "a micro-batch has no loss",
                              f"rows {self.begin} to {self.end}",
                              "its block ended without a call of backward()",
                              "call micro.backward(loss_sum) once in each")
            return False
        if not is_shortage(error):
            return False
        # The error goes with its traceback, whose frames hold tensors.
        lines = str(error).splitlines()
        self.short = lines[0] if lines else type(error).__name__
        return True


class OomGuard:
    """Runs a step in micro-batches, and runs it again in smaller ones where
    memory is short. The samples, and the batch that the optimizer sees, are the
    same.

        guard = penstock.OomGuard(optimizer, model)
        for batch in loader:
            for micro in guard.micro_batches(batch):
                with micro:
                    x, y = micro.batch["x"], micro.batch["y"]
                    loss = cross_entropy(model(x), y, reduction="sum")
                    micro.backward(loss)
            guard.step()

    A shortage drops the gradients of the batch, restores the random state and
    the module's buffers, and halves the micro-batch to a power of two, which
    stays for later steps. The first batch that is divided runs once more without
    gradients, in its first two micro-batches together: their loss must be the
    sum of theirs, else RequestError, memory.mean_loss, is raised. Compute the
    loss in a function where a shortage is
    likely: local variables of the loop hold tensors until they are assigned
    again.

    Over several ranks (`torch.distributed`), all of them vote after the
    micro-batches of a batch and before any other collective, and use the same
    size. Gradients are summed in step(), in buckets of 25 MiB, and divided once
    by the weights of all ranks; DistributedDataParallel's own reduction is
    switched off. FSDP and DeepSpeed gather parameters inside a step and cannot
    be guarded: use penstock.max_batch_size() before training.

    One thread.
    """

    def __init__(self, optimizer: torch.optim.Optimizer,
                 parameters: torch.nn.Module | Iterable[torch.nn.Parameter], *,
                 group: Any = None, scaler: Any = None, loader: Any = None,
                 micro_batch: int | None = None, least: int = 1,
                 exact: bool = False) -> None:
        """
        Args:
            optimizer: what step() calls. The guard clears the gradients.
            parameters: a module, or parameters. A module's buffers are restored
                too, and its DistributedDataParallel is recognized.
            group: the process group of the ranks; default: all of them, where
                torch.distributed is initialized.
            scaler: a torch.amp.GradScaler for float16.
            loader: a penstock.Loader, whose rows on the device are moved to the
                host before a batch is divided.
            micro_batch: rows in a micro-batch at first; default: the whole
                batch.
            least: the smallest micro-batch, in rows.
            exact: raise RequestError, memory.batch_norm, where dividing a batch
                would change its result, instead of reporting it.

        Raises RequestError: memory.sharded for FSDP or DeepSpeed.
        """
        self.optimizer, self.scaler = optimizer, scaler
        module = (parameters if isinstance(parameters, torch.nn.Module)
                  else None)
        self._module = module
        self._parameters = [
            parameter for parameter in (parameters if module is None
                                        else module.parameters())
            if parameter.requires_grad]
        _refuse_sharded(module, self._parameters)
        self.no_syncs = _no_syncs(module)
        self._ranks = RankGroup(group) if _has_ranks(group) else None
        self._loader = loader
        self._least = max(1, least)
        self._exact = exact
        self.micro_batch = micro_batch
        """Rows in a micro-batch; None: whole batches."""
        self.events: list[dict[str, Any]] = []
        """Each reaction to a shortage: {"step", "from", "to", "action",
        "exact"}, sizes in rows."""
        self._steps = 0
        self._weight: Any = 0
        self._emptied = False
        self._sums_known = False
        self._freed = ""

    def micro_batches(self, batch: Any) -> Iterator[MicroBatch]:
        """The micro-batches of a batch: tensors, or lists, tuples and mappings
        of them, with the rows first. A batch without rows yields none and takes
        part in the vote. Raises OutOfMemory, memory.too_small, where the
        smallest micro-batch does not fit."""
        batch = tensors_of(batch)
        rows = rows_of(batch)
        buffers = Tensors(self._module.buffers() if self._module else ())
        state = RandomState(one.device for one in self._parameters)
        self._emptied = False
        while True:
            self.optimizer.zero_grad(set_to_none=True)
            self._weight = 0
            size = min(self.micro_batch or rows, rows)
            short: str | None = None
            first: MicroBatch | None = None
            for begin in range(0, rows, max(1, size)):
                end = min(begin + size, rows)
                micro = MicroBatch(self, sliced(batch, begin, end), begin, end)
                yield micro
                short = micro.short
                if short is not None:
                    break
                self._weight = self._weight + (micro.weight or 0)
                if first is not None and not self._sums_known:
                    yield from self._check_sums(batch, first, micro)
                first = micro if begin == 0 else None
            if not self._react(short, size):
                return
            buffers.restore()
            state.restore()

    def _check_sums(self, batch: Any, first: MicroBatch, second: MicroBatch
                    ) -> Iterator[MicroBatch]:
        """Raises RequestError where the loss of two micro-batches together is
        not the sum of theirs."""
        self._sums_known = True
        buffers = Tensors(self._module.buffers() if self._module else ())
        state = RandomState(one.device for one in self._parameters)
        both = MicroBatch(self, sliced(batch, 0, second.end), 0, second.end)
        both.only_looks = True
        yield both
        buffers.restore()
        state.restore()
        totals = [one.total for one in (first, second, both)
                  if one.total is not None]
        if both.short is not None or len(totals) < 3:
            return
        weights = [float(one.weight or 0) for one in (first, second, both)]
        # A sum that was given as a mean was multiplied by its weight.
        losses = [float(total) / (weight if one.given == "mean" else 1)
                  for one, total, weight in zip((first, second, both),
                                                totals, weights)]
        found = reduction_of(losses[0], losses[1], losses[2],
                             (first.rows, second.rows))
        if found is None or found == first.given:
            return
        raise refused(
            "memory.mean_loss", "cannot add up the losses of micro-batches",
            "backward()",
            f"the loss of rows 0 to {first.end} is {losses[0]:g}, that of the "
            f"next {second.rows} is {losses[1]:g}, and that of both together "
            f"is {losses[2]:g}: it is a {found}, and was given as a "
            f"{first.given}",
            "give the sum over the rows, as with reduction=\"sum\" of torch's "
            "losses, or call backward(loss, weight, reduction=\"mean\")"
            if found == "mean" else 'leave out reduction="mean"')

    def step(self, clip_norm: float | None = None) -> torch.Tensor | None:
        """Sums the gradients over the ranks, divides them by the weights, and
        calls the optimizer; does nothing where no rank had a row. `clip_norm`:
        the largest norm of all gradients together. Returns that norm before it
        was cut; None without clip_norm."""
        gradients = self._gradients()
        weight = self._weight
        if self._ranks is not None:
            weight = self._ranks.sum_gradients(gradients, weight)
        if not isinstance(weight, torch.Tensor) and weight == 0:
            return None  # no rank had a row
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        _divide(gradients, weight)
        norm = None
        if clip_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(self._parameters, clip_norm)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self._steps += 1
        return norm

    def state_dict(self) -> dict[str, Any]:
        """The micro-batch in force, so that a resumed run begins with it."""
        return {"micro_batch": self.micro_batch, "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.micro_batch = state["micro_batch"]
        self._steps = state["steps"]

    def _gradients(self) -> list[torch.Tensor]:
        """Those that step() changes. Of several ranks, a parameter that has a
        gradient on any of them has one on all."""
        if self._ranks is not None:
            self._ranks.fill_missing_gradients(self._parameters)
        return [parameter.grad for parameter in self._parameters
                if parameter.grad is not None]

    def _react(self, short: str | None, size: int) -> bool:
        """Whether the batch is to be run again."""
        failed, largest = short is not None, size
        if self._ranks is not None:
            failed, largest = self._ranks.vote(failed, size)
        if not failed:
            return False
        self.optimizer.zero_grad(set_to_none=True)
        self._freed = "rows_to_host" if self._loader else "allocator_cache"
        freed = self._make_room() if short is not None else False
        stuck = short is not None and not freed
        if self._ranks is not None:
            stuck, _ = self._ranks.vote(stuck, 0)
        if not stuck:
            self._note(size, size, self._freed)
            return True
        if largest <= self._least:
            raise worded(OutOfMemory, "memory.too_small",
                         "the smallest micro-batch does not fit in memory",
                         f"step {self._steps}, {largest} row(s)",
                         short or "another rank ran out of memory",
                         "use a smaller model, activation checkpointing, or "
                         "shorter rows")
        smaller = max(self._least, 1 << ((largest - 1).bit_length() - 1))
        self._note(largest, smaller, "micro_batch")
        self.micro_batch = smaller
        return True

    def _make_room(self) -> bool:
        """Frees memory that no step needs; whether there was any."""
        if self._loader is not None and self._loader.release():
            return True
        self._freed = "allocator_cache"
        if self._emptied or not torch.cuda.is_available():
            return False
        self._emptied = True
        before = torch.cuda.memory_reserved()
        torch.cuda.empty_cache()
        return bool(torch.cuda.memory_reserved() < before)

    def _note(self, before: int, after: int, action: str) -> None:
        exact = after == before or not _has_batch_norm(self._module)
        if self._exact and not exact:
            raise refused("memory.batch_norm", "cannot divide a batch exactly",
                          f"step {self._steps}",
                          "batch normalization depends on all rows of a batch",
                          "set exact=False, or use a normalization by row")
        self.events.append({"step": self._steps, "from": before, "to": after,
                            "action": action, "exact": exact})


def _divide(gradients: list[torch.Tensor], weight: Any) -> None:
    if isinstance(weight, torch.Tensor):
        for gradient in gradients:
            gradient.div_(weight.to(gradient.device))
    elif gradients:
        torch._foreach_div_(gradients, weight)


def _has_batch_norm(module: torch.nn.Module | None) -> bool:
    return module is not None and any(
        isinstance(one, torch.nn.modules.batchnorm._BatchNorm) and one.training
        for one in module.modules())


def _has_ranks(group: Any) -> bool:
    return bool(torch.distributed.is_available()
                and torch.distributed.is_initialized()
                and torch.distributed.get_world_size(group) > 1)


def _no_syncs(module: torch.nn.Module | None) -> list[Callable[[], Any]]:
    """The no_sync() of each DistributedDataParallel in the module. Their
    forward passes no longer broadcast buffers: a rank without rows makes none."""
    if module is None:
        return []
    found = [one for one in module.modules()
             if isinstance(one, torch.nn.parallel.DistributedDataParallel)]
    for one in found:
        one.require_forward_param_sync = False
    return [one.no_sync for one in found]


def _refuse_sharded(module: torch.nn.Module | None,
                    parameters: list[torch.nn.Parameter]) -> None:
    names = {type(one).__name__ for one in (module.modules() if module else ())}
    kinds = {type(one.data).__name__ for one in parameters}
    for name in ("FullyShardedDataParallel", "DeepSpeedEngine"):
        if name in names:
            break
    else:
        if "DTensor" not in kinds and not any(
                name.startswith("FSDP") for name in names):
            return
        name = "sharded parameters (FSDP2)"
    raise refused("memory.sharded", "cannot guard this module", name,
                  "its collectives run inside the step, where a rank that is "
                  "short of memory would leave the others waiting",
                  "find the batch size before training: "
                  "penstock.max_batch_size(model, make_batch, step)")
