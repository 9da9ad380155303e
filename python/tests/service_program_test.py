"""`penstock serve` and its clients as a user types them, with a real training
where the program has its trainer."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

import penstock.program
from entry import main
from service_case import REAL, REQUEST, ServiceCase

PROGRAM = str(penstock.program.path())
try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None


@unittest.skipUnless(pathlib.Path(PROGRAM).exists(), "no program")
class Program(ServiceCase):
    def setUp(self):
        super().setUp()
        os.environ["PENSTOCK_PYTHON"] = sys.executable
        self.addCleanup(os.environ.pop, "PENSTOCK_PYTHON")

    def penstock(self, *arguments, code=0):
        done = subprocess.run(
            [PROGRAM, *arguments, "--service", str(self.folder / "s"),
             "--json"], capture_output=True, text=True, check=False,
            cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout) if done.stdout.startswith("{") else (
            done.stdout)

    def test_a_job_from_submit_to_resume(self):
        self.start()
        (self.folder / "request.json").write_text(json.dumps(REQUEST))
        job = self.penstock("submit", "request.json", "--set", "epochs=400")
        self.assertEqual(job["status"], "queued")
        self.until(lambda: len(self.trace(job["id"])) > 3)
        listed = self.penstock("jobs", "--status", "running")["jobs"]
        self.assertEqual([one["id"] for one in listed], [job["id"]])
        self.assertIn("begins afresh", self.penstock("logs", job["id"]))
        self.penstock("cancel", job["id"])
        self.client().wait(job["id"], 0.05)
        self.assertEqual(self.penstock("resume", job["id"])["status"],
                         "queued")

    def test_errors_are_those_of_the_service(self):
        self.start()
        error = self.penstock("submit", "--set", "epochz=1", code=2)["error"]
        self.assertEqual(error["code"], "service.unknown_key")
        error = self.penstock("logs", "0" * 12, code=2)["error"]
        self.assertEqual(error["code"], "service.no_job")
        self.kill()
        error = self.penstock("jobs", code=2)["error"]
        self.assertEqual(error["code"], "service.unreachable")

    def test_a_job_for_kubernetes_is_valid(self):
        arguments = ("submit", "--to", "k8s", "--name", "UHF Mixed", "--set",
                     "epochs=3")
        found = self.penstock(*arguments, "--dry-run")
        error = self.penstock(*arguments, code=2)["error"]
        self.assertIn("--dry-run", error["next"])
        self.assertEqual(found["metadata"]["name"], "uhf-mixed")
        if kubernetes_validate is not None:
            kubernetes_validate.validate(found, "1.30", strict=True)

    def test_a_signal_ends_the_service_and_not_its_jobs(self):
        self.start()
        job = self.client().submit("x", {"epochs": 9000})["id"]
        self.until(lambda: len(self.trace(job)) > 2)
        self.service.send_signal(signal.SIGTERM)
        self.assertEqual(self.service.wait(30), 128 + signal.SIGTERM)
        self.assertFalse((self.folder / "s").exists())
        taken = len(self.trace(job))
        self.until(lambda: len(self.trace(job)) > taken + 2)

    def test_the_teams_request_trains_to_its_end(self):
        self.program = PROGRAM
        self.start()
        request = {**REQUEST, "config": {**REQUEST["config"], "epochs": 3,
                                         "batch_size": 32}}
        job = self.client().send(request)
        ended = self.client().wait(job["id"], 0.2)
        if (ended["error"] or {}).get("code") == "trainer.part_missing":
            self.skipTest("the program has no trainer")
        self.assertEqual(ended["status"], "done", ended)
        report = self.client().report(job["id"])
        self.assertEqual(report["dataset"]["rows"], 200)  # of 400
        self.assertEqual(report["settings"]["source"]["rows_where"],
                         {"dataset_id": [REAL]})
        self.assertIn(b"epoch 3/3", self.client().logs(job["id"]))
        epochs = [data for kind, data in self.client().events(job["id"])
                  if kind == "epoch"]
        self.assertEqual(len(epochs), 3)
        self.assertIn("val_loss", epochs[0])


if __name__ == "__main__":
    main()
