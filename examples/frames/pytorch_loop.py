#!/usr/bin/env python3
"""A plain loop of PyTorch, whose checkpoint also holds the loader's state."""
import pathlib
import tempfile

import torch

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of


def train(job, steps, checkpoint, save_at=None):
    loader = penstock.open(job)
    model = Network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    parts = {"model": model, "optimizer": optimizer, "loader": loader}
    if checkpoint.exists():
        for name, state in torch.load(checkpoint).items():
            parts[name].load_state_dict(state)
    rows = []
    for step, batch in enumerate(loader.batches(steps), 1):
        tensors = batch.torch()
        rows.append(rows_of(tensors))
        loss = model(**tensors)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == save_at:
            torch.save({name: part.state_dict()
                        for name, part in parts.items()}, checkpoint)
    return rows, model.state_dict()


def main():
    args = arguments(__doc__)
    job = make_job(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = pathlib.Path(folder) / "checkpoint.pt"
        whole, weights = train(job, args.steps, checkpoint, args.stop)
        rest, resumed = train(job, args.steps - args.stop, checkpoint)
    assert_resumed(args.stop, whole, rest, weights, resumed)


if __name__ == "__main__":
    main()
