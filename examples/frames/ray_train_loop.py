#!/usr/bin/env python3
"""Ray Train's TorchTrainer: every worker opens the same loader.

    python3 ray_train_loop.py

Ray Train makes torch's process group, from which the loader takes its rank:
there is no DistributedSampler, and `prepare_data_loader()` is not called. A
worker that is lost begins again from the checkpoint, at the loader's batch."""
import os
import tempfile

import torch
import torch.distributed as dist

import penstock
from network import Network
from positions import arguments, assert_resumed, make_job, rows_of

WORKERS = 2


def train(job, steps, checkpoint, save_at=None):
    import ray.train.torch

    # As in torch, 16 rows are those of one rank.
    loader = penstock.Loader(job["source"], job["fields"], 16, shuffle=True,
                             device="cpu")
    model = ray.train.torch.prepare_model(Network())
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
        share = batch.rows / of_all.item() * dist.get_world_size()
        optimizer.zero_grad()
        (share * model(**tensors)["loss"]).backward()
        optimizer.step()
        if step == save_at and dist.get_rank() == 0:
            torch.save({name: part.state_dict()
                        for name, part in parts.items()}, checkpoint)
    dist.barrier()
    return rows, model.state_dict()


def on_worker(config):
    """Trains, and again from a checkpoint on: both must be the same."""
    job, stop, path = config["job"], config["stop"], config["path"]
    whole, weights = train(job, config["steps"], path, stop)
    rest, resumed = train(job, config["steps"] - stop, path)
    assert_resumed(stop, whole, rest, weights, resumed)
    of_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(of_ranks, whole)
    epoch = -(-config["rows"] // (16 * dist.get_world_size()))
    seen = [row for of_rank in of_ranks for step in of_rank[:epoch]
            for row in step]
    assert sorted(seen) == list(range(1, config["rows"] + 1)), "not each once"


def main():
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    args = arguments(__doc__)
    # Workers find the modules of this folder, and this package.
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(os.path.dirname(penstock.__file__))
    ray.init(num_cpus=WORKERS + 1, log_to_driver=False, runtime_env={
        "env_vars": {"PYTHONPATH": os.pathsep.join(
            [here, package, os.environ.get("PYTHONPATH", "")])}})
    with tempfile.TemporaryDirectory() as folder:
        TorchTrainer(
            on_worker, torch_config=TorchConfig(backend="gloo"),
            scaling_config=ScalingConfig(num_workers=WORKERS),
            run_config=RunConfig(storage_path=folder),
            train_loop_config={
                "job": make_job(args.rows), "rows": args.rows,
                "steps": args.steps, "stop": args.stop,
                "path": os.path.join(folder, "checkpoint.pt")}).fit()
    ray.shutdown()
    print(f"resumed after step {args.stop} of {args.steps} on {WORKERS} "
          "workers; each row was on one of them, once per epoch")


if __name__ == "__main__":
    main()
