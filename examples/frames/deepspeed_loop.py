#!/usr/bin/env python3
"""DeepSpeed, ZeRO stage 1: the loader's state goes into the client state of
the engine's checkpoint.

    deepspeed deepspeed_loop.py

Needs a GPU; --cpu tries it on gloo."""
import os
import tempfile

import torch

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of

SETTINGS = {
    "train_micro_batch_size_per_gpu": 32,  # DeepSpeed wants to know
    "optimizer": {"type": "AdamW", "params": {"lr": 2e-3, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
}


def train(job, steps, folder, save_at=None):
    import deepspeed

    loader = penstock.open(job)
    model = Network()
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=SETTINGS)
    if save_at is None:
        _, client = engine.load_checkpoint(folder)
        loader.load_state_dict(client["loader"])
    rows = []
    for step, batch in enumerate(loader.batches(steps), 1):
        tensors = batch.to(engine.device)
        rows.append(rows_of(tensors))
        engine.backward(engine(**tensors)["loss"])
        engine.step()
        if step == save_at:
            engine.save_checkpoint(
                folder, client_state={"loader": loader.state_dict()})
    return rows, engine.module.state_dict()


def main():
    args = arguments(__doc__, "--cpu")
    if not args.cpu and not torch.cuda.is_available():
        print("skipped: DeepSpeed needs a GPU; see --cpu")
        return
    if args.cpu:
        os.environ["DS_ACCELERATOR"] = "cpu"
    job = make_job(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        whole, weights = train(job, args.steps, folder, args.stop)
        rest, resumed = train(job, args.steps - args.stop, folder)
    assert_resumed(args.stop, whole, rest, weights, resumed)


if __name__ == "__main__":
    main()
