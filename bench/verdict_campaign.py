#!/usr/bin/env python3
"""How often the verdict is right: random pipelines in virtual time.

    bench/verdict_campaign.py [--pipelines 1000] [--seed N] [--penstock FILE]

Draws pipelines of 2 to 6 stages (1 to 8 threads, service times with a variation
of 0, 0.3 or 1, queues of 2 to 16 places) in which one stage is at least 15 %
slower than the others and than the accelerator, has `penstock sim` run them,
and compares what the verdict says with what was drawn: the limiting stage, the
rates of the stages, and what the first action gives when it is done. Then
pipelines whose every stage is at least 1.3 times as fast as the accelerator,
which must be called compute-bound. With --threads N so many pipelines of the
first kind run on real threads as well, by the wall clock: they sleep most of the
time, and where other programs use the machine, --realtime (as root) lets none
of these hold them up. Prints one JSON document. Without --seed every run draws
others.
"""

import argparse
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from result import print_result, processor

BATCHES = 2000
MUST_REACH = {"limited": "all named; rate_error_p95 <= 0.06",
              "in_order": "stage_or_order_named of 99 %",
              "gain_error_p95": 0.05, "on_threads": "50 pipelines or more",
              "compute_bound": "all called so without an action; AU >= 0.97"}


def stage_of(draw, name, rate, workers, cv):
    """A stage that makes `rate` batches per second with that many threads."""
    return {"name": name, "service_ms": 1e3 * workers / rate, "cv": cv,
            "workers": workers, "queue": draw.randint(2, 16)}


def pipeline(draw, delivery, slowest_of_step, others, step_ms=(5, 100)):
    """One stage gives `slowest_of_step` of what the accelerator takes, the
    others `others()` times the larger of the two."""
    step_ms = draw.uniform(*step_ms)
    count = draw.randint(2, 6)
    slow = draw.randrange(count)
    rate = slowest_of_step * 1e3 / step_ms
    stages = [stage_of(draw, f"stage{i}", rate * (1 if i == slow else others()),
                       draw.randint(1, 8), draw.choice((0, 0.3, 1)))
              for i in range(count)]
    return {"step_ms": step_ms, "delivery": delivery, "batches": BATCHES,
            "seed": draw.randrange(1 << 40), "stages": stages}, f"stage{slow}"


def changed(described, action):
    """The pipeline with what the action sets."""
    described = copy.deepcopy(described)
    name, key = action["knob"].rsplit(".", 1)
    next(stage for stage in described["stages"]
         if stage["name"] == name)[key] = action["to"]
    return described


class Program:
    def __init__(self, command, folder):
        self.command, self.folder = command, pathlib.Path(folder)

    def __call__(self, pipelines):
        file = self.folder / "pipelines.json"
        file.write_text(json.dumps(pipelines))
        told = subprocess.run([*self.command, str(file)],
                              capture_output=True, text=True, check=False)
        if told.returncode:
            raise SystemExit(told.stdout + told.stderr)
        return json.loads(told.stdout)


def at(values, share):
    """The value below which that share of them lies; None of no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] \
        if ordered else None


def rate_errors(described, seen):
    return [abs(found["rate"] * stage["service_ms"] / 1e3 / stage["workers"]
                - 1) for stage, found in zip(described["stages"],
                                             seen["stages"])]


def gains_of(program, pipelines, seen):
    """What the first action of each verdict said that it gives, and gave."""
    pairs = [(described, result) for described, result in zip(pipelines, seen)
             if result["verdict"]["actions"]]
    after = program([changed(described, result["verdict"]["actions"][0])
                     for described, result in pairs]) if pairs else []
    return [(result["verdict"]["actions"][0]["predicted_gain"],
             then["rate"] / result["rate"] - 1)
            for (_, result), then in zip(pairs, after)]


def limited(program, draw, count, delivery, step_ms=(5, 100)):
    drawn = [pipeline(draw, delivery, draw.uniform(0.2, 1 / 1.15),
                      lambda: draw.uniform(1.15, 4), step_ms)
             for _ in range(count)]
    pipelines = [described for described, _ in drawn]
    seen = program(pipelines)
    named = [result["verdict"]["stage"] == slow
             for result, (_, slow) in zip(seen, drawn)]
    order = [result["verdict"]["limit"] == "order" for result in seen]
    parts = [abs(sum(result["parts"].values()) - 1) for result in seen]
    gains = gains_of(program, pipelines, seen)
    off = [abs(predicted - measured) for predicted, measured in gains]
    return {
        "pipelines": count, "delivery": delivery,
        "slowest_stage_named": sum(named),
        "order_named": sum(order),
        "stage_or_order_named": sum(a or b for a, b in zip(named, order)),
        "rate_error_p95": at([e for pair in zip(pipelines, seen)
                              for e in rate_errors(*pair)], 0.95),
        "first_actions": len(gains), "gain_error_median": at(off, 0.5),
        "gain_error_p95": at(off, 0.95), "gain_error_max": at(off, 1),
        "rate_then_error_p95": at([abs((1 + predicted) / (1 + measured) - 1)
                                   for predicted, measured in gains], 0.95),
        "parts_off_by_at_most": max(parts)}


def computing(program, draw, count):
    pipelines = [pipeline(draw, "completion", 1.3,
                          lambda: draw.uniform(1, 3))[0] for _ in range(count)]
    seen = program(pipelines)
    return {
        "pipelines": count, "least_rate_of_the_step": 1.3,
        "called_compute": sum(result["verdict"]["limit"] == "compute"
                              for result in seen),
        "with_an_action": sum(bool(result["verdict"]["actions"])
                              for result in seen),
        "au_min": min(result["au"] for result in seen),
        "au_at_least_0.97": sum(result["au"] >= 0.97 for result in seen),
        "au_p05": at([result["au"] for result in seen], 0.05)}


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--pipelines", type=int, default=1000)
    options.add_argument("--seed", type=int)
    options.add_argument("--threads", type=int, default=0)
    options.add_argument("--realtime", action="store_true",
                         help="the threads, by chrt -f 10")
    options.add_argument("--build", type=pathlib.Path, default="build",
                         help="the folder that holds bin/penstock")
    chosen = options.parse_args()
    seed = random.SystemRandom().randrange(1 << 40) \
        if chosen.seed is None else chosen.seed
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        program = Program([chosen.build / "bin/penstock", "sim", "--json"],
                          folder)
        threads = Program(
            [*("chrt -f 10".split() if chosen.realtime else ()),
             chosen.build / "bin/bench_pipeline_threads"], folder)
        results = {
            "on_threads": limited(threads, draw, chosen.threads, "completion",
                                  (2, 6)) if chosen.threads else None,
            "limited": limited(program, draw, chosen.pipelines, "completion"),
            "in_order": limited(program, draw, chosen.pipelines, "step"),
            "compute_bound": computing(program, draw, chosen.pipelines)}
    print_result("verdict_campaign", __doc__,
                 " ".join(["bench/verdict_campaign.py", *sys.argv[1:]]),
                 {"machine": processor(), "seed": seed, "batches": BATCHES,
                  **results, "must_reach": MUST_REACH})


if __name__ == "__main__":
    main()
