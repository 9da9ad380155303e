"""Ranks on two machines, which two network namespaces stand for, started as srun
starts them: nothing needs to be set but MASTER_ADDR."""
import json
import os
import shutil
import subprocess
import unittest

import train_ranks_test
from penstock_cli import PROGRAM, read_safetensors

ADDRESSES = "10.213.77.1", "10.213.77.2"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"),
                     "needs root and iproute2, to make network namespaces")
class RankHosts(train_ranks_test.RanksCase):
    def setUp(self):
        super().setUp()
        self.hosts = [f"penstock-{os.getpid()}-{rank}" for rank in range(2)]
        try:
            ip("netns", "add", self.hosts[0])
        except subprocess.CalledProcessError as error:
            self.skipTest("network namespaces cannot be made here: "
                          + error.stderr.decode().strip())
        self.addCleanup(ip, "netns", "del", self.hosts[0])
        ip("netns", "add", self.hosts[1])
        self.addCleanup(ip, "netns", "del", self.hosts[1])
        ip("link", "add", "eth0", "netns", self.hosts[0], "type", "veth",
           "peer", "name", "eth0", "netns", self.hosts[1])
        for host, address in zip(self.hosts, ADDRESSES):
            ip("-n", host, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
            ip("-n", host, "link", "set", "lo", "up")

    def start_on(self, rank, *arguments, **variables):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("MASTER_", "GLOO_", "NCCL_",
                                         "SLURM_"))}
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.hosts[rank], PROGRAM, "train",
             "job.json", *map(str, arguments), "--json"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**clean, "SLURM_PROCID": str(rank),
                 "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0",
                 "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_JOB_ID": "77",
                 "MASTER_ADDR": ADDRESSES[0], **variables})
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def test_master_addr_is_all_that_they_need(self):
        self.succeed("train", "job.json", "--output", "alone")
        ranks = [self.start_on(rank, "--output", "both") for rank in range(2)]
        first, other = self.answers(ranks)
        self.assertEqual((first.code, other.code), (0, 0),
                         first.err + other.err)
        self.assertEqual(first.json()["ranks"]["world"], 2)
        self.assert_same_but_for_rounding(
            *(read_safetensors(self.folder / name / "model.safetensors")
              for name in ("both", "alone")))

    def test_other_machine_that_is_cut_off_is_named(self):
        ranks = [self.start_on(rank, "--set", "train.epochs=100000")
                 for rank in range(2)]
        self.newest_run("steps.jsonl", "state.json")
        ranks[1].kill()
        ranks[1].communicate()
        error = self.refused(*self.answers(ranks[:1]), "device",
                             "ranks.lost")
        self.assertIn("rank 1 on ", error["where"])
        run = self.newest_run("state.json")
        self.assertGreaterEqual(
            json.loads((run / "state.json").read_text())["steps_taken"], 0)

    def test_master_that_is_not_there_is_named(self):
        error = self.refused(
            *self.answers([self.start_on(1, MASTER_ADDR="10.213.77.9")]),
            "request", "ranks.master")
        self.assertIn("10.213.77.9", error["where"])


if __name__ == "__main__":
    unittest.main()
