#!/usr/bin/env python3
"""DistributedDataParallel: every row once per epoch, on one of the ranks.

    torchrun --nproc-per-node 2 ddp_loop.py

The loader takes its rank from the process group; there is no
DistributedSampler. The last batch of an epoch is short, and its rows may not
suffice for every rank."""
import pathlib
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of


def train(job, steps, checkpoint, save_at=None):
    # As in torch, 16 rows are those of one rank.
    loader = penstock.Loader(job["source"], job["fields"], 16, shuffle=True)
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    parts = {"model": model, "optimizer": optimizer, "loader": loader}
    if save_at is None:
        for name, state in torch.load(checkpoint).items():
            parts[name].load_state_dict(state)
    rows = []
    for step, batch in enumerate(loader.batches(steps), 1):
        tensors = batch.torch()
        rows.append(rows_of(tensors))
        of_all = torch.tensor(batch.rows)
        dist.all_reduce(of_all)
        # DDP takes the mean over ranks, however many rows each has.
        share = batch.rows / of_all.item() * dist.get_world_size()
        optimizer.zero_grad()
        (share * model(**tensors)["loss"]).backward()
        optimizer.step()
        if step == save_at and dist.get_rank() == 0:  # the same on all ranks
            torch.save({name: part.state_dict()
                        for name, part in parts.items()}, checkpoint)
    dist.barrier()
    return rows, model.module.state_dict(), len(loader)


def assert_each_row_once(rows, steps_of_epoch, count):
    """`rows` are those of this rank, step by step, from an epoch's start."""
    of_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(of_ranks, rows)
    epochs = len(rows) // steps_of_epoch
    for begin in range(0, epochs * steps_of_epoch, steps_of_epoch):
        seen = [row for of_rank in of_ranks
                for step in of_rank[begin:begin + steps_of_epoch]
                for row in step]
        assert sorted(seen) == list(range(1, count + 1)), "not each row once"
    print(f"rank {dist.get_rank()}: {epochs} epochs; each of the {count} rows "
          f"was on one of {len(of_ranks)} ranks, once per epoch")


def main():
    args = arguments(__doc__)
    dist.init_process_group("gloo")
    job = make_job(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        shared = [folder]
        dist.broadcast_object_list(shared)
        checkpoint = pathlib.Path(shared[0]) / "checkpoint.pt"
        whole, weights, epoch = train(job, args.steps, checkpoint, args.stop)
        rest, resumed, _ = train(job, args.steps - args.stop, checkpoint)
    assert_each_row_once(whole, epoch, args.rows)
    assert_resumed(args.stop, whole, rest, weights, resumed)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
