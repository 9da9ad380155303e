"""`penstock train` whose last rank gets SIGTERM after so many steps:
`own_ranks_signal.py STEPS JOB SET ...`."""
import json
import os
import signal
import sys

from penstock._training import stepper
from penstock.training import main

after, job, *sets = sys.argv[1:]
step = stepper.Stepper.step


def stepped(self, batch, number):
    last = str(int(os.environ["WORLD_SIZE"]) - 1)
    if number + 1 == int(after) and os.environ["RANK"] == last:
        os.kill(os.getpid(), signal.SIGTERM)
    return step(self, batch, number)


stepper.Stepper.step = stepped
sys.argv[1:] = [json.dumps({
    "job": job, "manifest": "", "resume": "", "model": "", "output": "",
    "skip": 0, "trace": False, "sets": sets, "json": True})]
main()
