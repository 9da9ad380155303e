"""Ranks as processes of their own over one store: killed, and continued by
another number of them. A rank is PENSTOCK_OWN_LOOP, a loop in C++."""
import hashlib
import json
import os
import random
import struct
import subprocess
import unittest

from penstock_cli import Case

OWN_LOOP = os.environ.get("PENSTOCK_OWN_LOOP", "build/bin/own_loop")
ROWS, BATCH, EPOCHS = 1003, 64, 3  # the last batch of an epoch is short
STEPS = -(-ROWS // BATCH)          # of an epoch
SAVED_EVERY = 5                    # steps
SEED = 11                          # of when the ranks are killed


def key_of(number):
    return 7 * number + 3


def values_of(number):
    return number + 0.25, -number / 8


def digest_of(number):
    """Of the bytes of a row in a batch, which no part of Penstock has made."""
    a, b = values_of(number)
    return hashlib.sha256(struct.pack("<ffd", a, b, a)).hexdigest()


class Ranks(Case):
    def setUp(self):
        super().setUp()
        self.database([(key_of(i), *values_of(i)) for i in range(ROWS)],
                      declared="id INTEGER PRIMARY KEY, a REAL, b REAL")
        self.write_job(self.of_rows())
        found = self.succeed("train", "job.json", "--json", "--set",
                             "loader.cache=ram").json()
        # Ranks that cannot ask one another name their rows.
        self.write_job(self.of_rows(found["dataset"]["fingerprint"]))

    def of_rows(self, fingerprint=None):
        source = {"kind": "sqlite", "path": "d.sqlite", "table": "t"}
        if fingerprint:
            source["fingerprint"] = fingerprint
        return self.job(
            source=source,
            fields={"x": {"columns": ["a", "b"]},
                    "y": {"columns": ["a"], "dtype": "float64"}},
            loader={"batch_size": BATCH, "seed": 5, "tail": "exact",
                    "cache": "disk", "cache_dir": "stores"},
            train={"epochs": EPOCHS}, device="cpu")

    def pure_order(self):
        """(epoch, position, key, digest) of the whole job: the order as the
        program computes it step by step, without a store, and the bytes as
        they are computed here."""
        digests = {key_of(i): digest_of(i) for i in range(ROWS)}
        whole = []
        for epoch in range(EPOCHS):
            lines = self.batches("--epoch", epoch, "--steps", f"0:{STEPS}",
                                 "--set", "loader.cache=none")
            keys = [key for line in lines for key in line["keys"]]
            self.assertEqual(sorted(keys), sorted(digests))
            whole += [(epoch, position, key, digests[key])
                      for position, key in enumerate(keys)]
        return whole

    def start_ranks(self, world, *state):
        """So many processes, at once."""
        ranks = []
        for rank in range(world):
            process = subprocess.Popen(
                [OWN_LOOP, "job.json", *state], cwd=self.folder, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={**os.environ, "RANK": str(rank),
                     "WORLD_SIZE": str(world)})
            self.addCleanup(lambda p=process: (p.kill(), p.communicate()))
            ranks.append(process)
        return ranks, [json.loads(rank.stdout.readline()) for rank in ranks]

    def step_of(self, ranks):
        """What all ranks print of their next step, and the state behind it;
        None at the end."""
        lines = [rank.stdout.readline() for rank in ranks]
        if not any(lines):
            return None
        lines = [json.loads(line) for line in lines]
        [at] = {(line["epoch"], line["step"]) for line in lines}
        [state] = {json.dumps(line["state"]) for line in lines}
        samples = [tuple(sample) for line in lines
                   for sample in line["samples"]]
        return [(at[0], at[1] * BATCH + i, *sample)
                for i, sample in enumerate(samples)], state

    @staticmethod
    def let_go_on(ranks):
        for rank in ranks:
            rank.stdin.write("\n")
            rank.stdin.flush()

    def test_killed_and_continued_by_fewer_they_take_the_pure_order(self):
        chance = random.Random(SEED)
        pure = self.pure_order()
        steps = STEPS + chance.randrange(SAVED_EVERY, STEPS - SAVED_EVERY)
        ranks, opened = self.start_ranks(4)
        self.assertEqual([rank["tier"] for rank in opened], ["disk"] * 4)
        self.assertEqual(sum(rank["scanned"] for rank in opened), 1)
        history, saved = [], 0
        for step in range(steps):
            taken, state = self.step_of(ranks)
            history += taken
            if step % SAVED_EVERY == SAVED_EVERY - 1:
                (self.folder / "state.json").write_text(state)
                saved = len(history)
            # In the last step some go on, and some have not heard of it.
            last = step == steps - 1
            self.let_go_on(chance.sample(ranks, 2) if last else ranks)
        for rank in ranks:
            rank.kill()
        for rank in ranks:
            rank.wait()
        self.assertEqual(history, pure[:len(history)])
        self.assertTrue(0 < saved < len(history) < len(pure))
        self.assertNotEqual(history[-1][1], ROWS - 1)  # within an epoch

        ranks, opened = self.start_ranks(3, "state.json")
        self.assertEqual(sum(rank["scanned"] for rank in opened), 0)
        history = history[:saved]
        while (step := self.step_of(ranks)) is not None:
            history += step[0]
            self.let_go_on(ranks)
        self.assertEqual([rank.wait() for rank in ranks], [0] * 3)
        self.assertEqual(history, pure)
        for epoch in range(EPOCHS):
            keys = [key for at, _, key, _ in history if at == epoch]
            self.assertEqual(sorted(keys), [key_of(i) for i in range(ROWS)])
        self.assertEqual([path.suffix for path in
                          (self.folder / "stores").iterdir()], [".store"])


if __name__ == "__main__":
    unittest.main()
