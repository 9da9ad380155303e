"""`penstock train` whose rank 1 is killed after so many steps, while rank 0 waits
in a call that does not notice it (`deaf`), or cannot close its connections
afterwards (`stuck`): `own_ranks_deaf.py deaf|stuck STEPS JOB`."""
import json
import os
import pathlib
import signal
import sys
import time

import torch

from penstock._training import ranks, stepper
from penstock.training import main

how, after, job = sys.argv[1:]
step = stepper.Stepper.step
gathered, summed = ranks.Group._gathered, ranks.Group.sum
DEAF = pathlib.Path("deaf")


def stepped(self, batch, number):
    if number + 1 == int(after) and how == "deaf":
        DEAF.touch()
    if number + 1 == int(after) and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch, number)


def waiting(call):
    def waits(self, given):
        if os.environ["RANK"] == "0":
            while DEAF.exists():
                time.sleep(1)
        return call(self, given)
    return waits


stepper.Stepper.step = stepped
ranks.Group._gathered, ranks.Group.sum = waiting(gathered), waiting(summed)
if how == "stuck":
    torch.distributed.destroy_process_group = lambda: time.sleep(1000)
sys.argv[1:] = [json.dumps({
    "job": job, "manifest": "", "resume": "", "model": "", "output": "",
    "skip": 0, "trace": False, "sets": [], "json": True})]
main()
