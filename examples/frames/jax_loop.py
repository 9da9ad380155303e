#!/usr/bin/env python3
"""A loop of JAX, with the loader's state in Orbax's checkpoint. No torch."""
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import orbax.checkpoint as orbax

import penstock
from positions import arguments, assert_resumed, make_job, rows_of


def loss_of(weights, receivers, target):
    hidden = jax.nn.relu(receivers.reshape(len(receivers), -1) @ weights["in"])
    return jnp.mean((hidden @ weights["out"] - target) ** 2)


@jax.jit
def stepped(weights, receivers, target):
    slopes = jax.grad(loss_of)(weights, receivers, target)
    return jax.tree.map(lambda w, slope: w - 0.02 * slope, weights, slopes)


def train(job, steps, checkpoint, save_at=None):
    loader = penstock.open(job)
    keys = jax.random.split(jax.random.key(0))
    weights = {"in": 0.1 * jax.random.normal(keys[0], (60, 64)),
               "out": 0.1 * jax.random.normal(keys[1], (64, 2))}
    with orbax.Checkpointer(orbax.CompositeCheckpointHandler()) as keeper:
        if save_at is None:
            saved = keeper.restore(checkpoint, orbax.args.Composite(
                weights=orbax.args.StandardRestore(weights),
                loader=orbax.args.JsonRestore()))
            weights = saved.weights
            loader.load_state_dict(saved.loader)
        rows = []
        for step, batch in enumerate(loader.batches(steps), 1):
            arrays = batch.jax()
            rows.append(rows_of(arrays))
            weights = stepped(weights, arrays["receivers"], arrays["target"])
            if step == save_at:
                keeper.save(checkpoint, orbax.args.Composite(
                    weights=orbax.args.StandardSave(weights),
                    loader=orbax.args.JsonSave(loader.state_dict())))
    return rows, weights


def main():
    args = arguments(__doc__)
    job = make_job(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = pathlib.Path(folder) / "checkpoint"
        whole, weights = train(job, args.steps, checkpoint, args.stop)
        rest, resumed = train(job, args.steps - args.stop, checkpoint)
    assert_resumed(args.stop, whole, rest, weights, resumed)


if __name__ == "__main__":
    main()
