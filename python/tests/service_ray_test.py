"""The runner of the job service on a real Ray cluster of two nodes (with
ray[default]; skipped without)."""

import json
import subprocess
import sys
import textwrap
import unittest

from entry import main
from service_case import ServiceCase

try:
    import ray  # noqa: F401
    MISSING = ""
except ImportError:
    MISSING = "Ray is not installed"

# A process of its own: it ends when its input ends, with the whole cluster.
CLUSTER = textwrap.dedent("""
    import json, sys
    from ray.cluster_utils import Cluster
    cluster = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 2, "include_dashboard": True, "dashboard_port": 0})
    cluster.add_node(num_cpus=2)
    print("address", json.dumps(cluster.head_node.webui_url), flush=True)
    sys.stdin.read()
    cluster.shutdown()
""")


@unittest.skipIf(MISSING, MISSING)
class OnRay(ServiceCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = subprocess.Popen(
            [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            cwd="/")
        cls.addClassCleanup(cls.end_cluster)
        for line in cls.cluster.stdout:
            if line.startswith("address "):
                cls.address = "http://" + json.loads(line[8:])
                return
        raise unittest.SkipTest("Ray does not start here")

    @classmethod
    def end_cluster(cls):
        try:
            cls.cluster.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            cls.cluster.kill()

    def setUp(self):
        super().setUp()
        self.configure(runner="ray", slots=2, ray={"address": self.address})
        self.start()

    def test_a_job_runs_to_its_end(self):
        job = self.client().submit("x", {"epochs": 5})
        self.assertEqual(job["runner"], "ray")
        self.assertEqual(self.client().wait(job["id"], 0.2)["status"], "done")
        self.assertEqual([step for step, _ in self.trace(job["id"])],
                         [1, 2, 3, 4, 5])

    def test_cancel_saves_and_resume_continues(self):
        job = self.client().submit("x", {"epochs": 9000})["id"]
        self.until(lambda: len(self.trace(job)) > 3, 120)
        self.client().cancel(job)
        self.assertEqual(self.client().wait(job, 0.2)["status"], "cancelled")
        saved = len(self.trace(job))
        self.client().resume(job)
        self.until(lambda: len(self.trace(job)) > saved + 3, 120)
        steps = [step for step, _ in self.trace(job)]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.client().cancel(job)
        self.client().wait(job, 0.2)


class WithoutRay(ServiceCase):
    def test_jobs_stay_queued_and_say_why(self):
        self.configure(runner="ray", ray={"address": "http://127.0.0.1:9"})
        self.start()
        job = self.client().submit("x", {})["id"]
        found = self.until(lambda: (
            found := self.client().job(job)) and found["reason"] and found)
        self.assertEqual(found["status"], "queued")
        self.assertIn("Ray", found["reason"])


if __name__ == "__main__":
    main()
