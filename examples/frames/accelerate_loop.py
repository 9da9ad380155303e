#!/usr/bin/env python3
"""A loop of Accelerate. prepare() hands the loader back unchanged: rows are
shared among the ranks, and batches lie on the device, already."""
import tempfile

import accelerate
import torch

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of


def train(job, steps, folder, save_at=None):
    accelerator = accelerate.Accelerator()
    model = Network()
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.AdamW(model.parameters(), lr=2e-3),
        penstock.open(job))
    assert isinstance(loader, penstock.loader.BaseLoader)
    accelerator.register_for_checkpointing(loader)
    if save_at is None:
        accelerator.load_state(folder)
    rows = []
    for step, batch in enumerate(loader.batches(steps), 1):
        tensors = batch.to(accelerator.device)
        rows.append(rows_of(tensors))
        loss = model(**tensors)["loss"]
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        if step == save_at:
            accelerator.save_state(folder)
    return rows, accelerator.get_state_dict(model)


def main():
    args = arguments(__doc__)
    job = make_job(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        whole, weights = train(job, args.steps, folder, args.stop)
        rest, resumed = train(job, args.steps - args.stop, folder)
    assert_resumed(args.stop, whole, rest, weights, resumed)


if __name__ == "__main__":
    main()
