#!/usr/bin/env python3
"""FSDP2 (fully_shard): the loader is one more part of a distributed checkpoint.

    torchrun --nproc-per-node 2 fsdp2_loop.py

Needs a GPU for each rank; --cpu runs it on gloo, to try it."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (get_state_dict,
                                                     set_state_dict)
from torch.distributed.fsdp import fully_shard

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of


class Trained:
    """Model and optimizer, as dcp wants them."""

    def __init__(self, model, optimizer):
        self.parts = model, optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(*self.parts)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state):
        set_state_dict(*self.parts, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])


def train(job, steps, device, checkpoint, save_at=None):
    loader = penstock.open(job)
    mesh = dist.device_mesh.init_device_mesh(device.type,
                                             (dist.get_world_size(),))
    model = fully_shard(Network().to(device), mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    parts = {"trained": Trained(model, optimizer), "loader": loader}
    if save_at is None:
        dcp.load(parts, checkpoint_id=checkpoint)
    rows = []
    for step, batch in enumerate(loader.batches(steps), 1):
        tensors = batch.to(device)
        rows.append(rows_of(tensors))
        optimizer.zero_grad()
        model(**tensors)["loss"].backward()
        optimizer.step()
        if step == save_at:
            dcp.save(parts, checkpoint_id=checkpoint)
    return rows, {name: weight.full_tensor()
                  for name, weight in model.state_dict().items()}


def main():
    args = arguments(__doc__, "--cpu")
    if not args.cpu and not torch.cuda.is_available():
        print("skipped: FSDP2 needs GPUs; see --cpu")
        return
    device = torch.device("cpu")
    if not args.cpu:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if args.cpu else "cpu:gloo,cuda:nccl")
    job = make_job(args.rows)
    job["device"] = "cpu"  # batch.to() brings them to the rank's own GPU
    with tempfile.TemporaryDirectory() as folder:
        shared = [folder]
        dist.broadcast_object_list(shared)
        whole, weights = train(job, args.steps, device, shared[0], args.stop)
        rest, resumed = train(job, args.steps - args.stop, device, shared[0])
        dist.barrier()
    assert_resumed(args.stop, whole, rest, weights, resumed)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
