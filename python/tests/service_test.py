"""The job service from outside: submit, watch, cancel, resume, remove."""

import json
import os
import stat
import unittest

from entry import main
from service_case import OTHER, REAL, REQUEST, ServiceCase


class Submitting(ServiceCase):
    def test_the_teams_request_becomes_a_job(self):
        self.start()
        status, job = self.ask("POST", "/api/training/jobs",
                               json.dumps(REQUEST).encode())
        self.assertEqual(status, 201)
        self.assertEqual(set(job), {"id", "job_name", "status", "runner",
                                    "links", "mapped"})
        self.assertEqual((job["status"], job["runner"]), ("queued", "local"))
        became = {key["key"]: key["settings"] for key in job["mapped"]}
        self.assertEqual(became["batch_size"], ["loader.batch_size = 256"])
        self.assertEqual(became["dataset_ids"], [
            'source.rows_where = {"dataset_id": ["%s"]}' % REAL])
        written = self.until(lambda: (
            self.folder / "runs" / job["id"] / "job.json").exists() and
            json.loads((self.folder / "runs" / job["id"] / "job.json"
                        ).read_text()))
        self.assertEqual(written["source"]["rows_where"],
                         {"dataset_id": [REAL]})
        self.assertEqual(written["train"]["epochs"], 1000)

    def test_a_job_runs_to_its_end(self):
        self.start()
        job = self.client().submit("one", {"epochs": 5})
        ended = self.client().wait(job["id"], 0.05)
        self.assertEqual(ended["status"], "done")
        self.assertEqual([state["status"] for state in ended["states"]],
                         ["queued", "running", "done"])
        self.assertIn(b"begins afresh", self.client().logs(job["id"]))
        self.assertEqual(self.client().logs(job["id"], 7)[:6], b"afresh")
        self.assertEqual(self.client().report(job["id"])["steps"], 5)
        status, found = self.ask(
            "GET", f"/api/training/jobs/{job['id']}/artifacts")
        names = [one["name"] for one in found["artifacts"]]
        self.assertIn("report.json", names)
        status, text = self.ask("GET", found["artifacts"][
            names.index("report.json")]["link"])
        self.assertEqual((status, text["steps"]), (200, 5))

    def test_jobs_wait_for_a_slot_in_their_order(self):
        self.start()
        first = self.client().submit("first", {"epochs": 20})
        second = self.client().submit("second", {"epochs": 1})
        urgent = self.client().submit("urgent", {"epochs": 1}, priority=1)
        for job in (first, second, urgent):
            self.client().wait(job["id"], 0.05)
        jobs = {job["job_name"]: job for job in self.client().jobs()}
        self.assertLess(jobs["first"]["started"], jobs["urgent"]["started"])
        self.assertLess(jobs["urgent"]["started"], jobs["second"]["started"])

    def test_a_list_of_values_makes_a_sweep(self):
        self.start()
        answer = self.client().submit(
            "sweep", {"epochs": 1, "learning_rate": [0.1, 0.01],
                      "batch_size": [8, 16]})
        self.assertEqual(len(answer["jobs"]), 4)
        status, found = self.ask(
            "GET", f"/api/training/jobs?parent={answer['parent']}")
        tried = {(job["config"]["learning_rate"], job["config"]["batch_size"])
                 for job in found["jobs"]}
        self.assertEqual(tried, {(0.1, 8), (0.1, 16), (0.01, 8), (0.01, 16)})

    def test_a_failed_job_has_the_error_of_the_program(self):
        self.environment = {"PRETEND_ERROR": "1"}
        self.start()
        job = self.client().wait(self.client().submit("x", {})["id"], 0.05)
        self.assertEqual(job["status"], "failed")
        self.assertEqual(job["error"]["code"], "sqlite.locked")
        self.assertEqual(job["reason"], "because")

    def test_a_recipe_that_changed_since_is_said_to_have_changed(self):
        self.start()
        job = self.client().submit("x", {"epochs": 1})
        self.assertFalse(self.client().job(job["id"])["recipe_changed"])
        with open(self.folder / "job.json", "a") as file:
            file.write("\n")
        self.assertTrue(self.client().job(job["id"])["recipe_changed"])


class Ending(ServiceCase):
    def test_a_cancelled_job_saves_and_is_resumed(self):
        self.start()
        job = self.client().submit("x", {"epochs": 200})["id"]
        self.until(lambda: len(self.trace(job)) > 3)
        self.assertEqual(self.client().cancel(job)["status"], "cancelling")
        self.assertEqual(self.client().wait(job, 0.05)["status"], "cancelled")
        saved = len(self.trace(job))
        self.assertEqual(self.client().resume(job)["status"], "queued")
        self.until(lambda: len(self.trace(job)) > saved + 3)
        steps = [step for step, _ in self.trace(job)]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))

    def test_a_job_that_waits_is_cancelled_at_once(self):
        self.configure(slots=0)
        self.start()
        job = self.client().submit("x", {})["id"]
        self.assertEqual(self.client().cancel(job)["status"], "cancelled")

    def test_what_a_jobs_state_forbids_is_a_conflict(self):
        self.start()
        client = self.client()
        job = client.submit("x", {"epochs": 1})["id"]
        client.wait(job, 0.05)
        for verb in ("cancel", "resume"):
            status, answer = self.ask("POST",
                                      f"/api/training/jobs/{job}/{verb}")
            self.assertEqual((status, answer["error"]["code"]),
                             (409, "service.state"))
        second = client.submit("y", {"epochs": 500})["id"]
        status, answer = self.ask("DELETE", f"/api/training/jobs/{second}")
        self.assertEqual((status, answer["error"]["code"]),
                         (409, "service.state"))

    def test_a_removed_job_takes_its_folder_with_it(self):
        self.start()
        job = self.client().submit("x", {"epochs": 1})["id"]
        self.client().wait(job, 0.05)
        self.client().remove(job)
        self.assertFalse((self.folder / "runs" / job).exists())
        status, answer = self.ask("GET", f"/api/training/jobs/{job}")
        self.assertEqual((status, answer["error"]["code"]),
                         (404, "service.no_job"))


class Listening(ServiceCase):
    def test_events_tell_everything_and_go_on_after_the_last_one(self):
        self.start()
        job = self.client().submit("x", {"epochs": 12})["id"]
        events = list(self.client().events(job))
        kinds = [kind for kind, _ in events]
        self.assertEqual([data["status"] for kind, data in events
                          if kind == "state"], ["queued", "running", "done"])
        self.assertEqual([data["epoch"] for kind, data in events
                          if kind == "epoch"], list(range(1, 13)))
        self.assertEqual(kinds[-1], "state")
        # A run of some milliseconds is too short for one.
        self.assertEqual("verdict" in kinds,
                         bool(self.client().report(job).get("verdict")))
        again = list(self.client().events(job, last_id="2.10"))
        self.assertEqual([data["epoch"] for kind, data in again
                          if kind == "epoch"], [11, 12])
        self.assertEqual([data["status"] for kind, data in again
                          if kind == "state"], ["done"])

    def test_metrics_count_jobs(self):
        self.start()
        job = self.client().submit("x", {"epochs": 1})["id"]
        self.client().wait(job, 0.05)
        status, text = self.ask("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertIn('penstock_jobs{status="done"} 1', text)


class Starting(ServiceCase):
    def test_the_socket_is_its_users_alone(self):
        self.start(http=False)
        mode = os.stat(self.folder / "s").st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertEqual(self.ask("GET", "/healthz", unix=True),
                         (200, {"status": "ok"}))

    def refusal(self, **more):
        process = self.start(wait=False, **more)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 2, out)
        return json.loads(out.strip().splitlines()[-1])["error"]

    def test_a_second_service_is_refused_with_the_first_ones_process(self):
        self.start()
        first = self.service.pid
        error = self.refusal(socket=str(self.folder / "t"))
        self.assertEqual(error["code"], "service.in_use")
        self.assertIn(str(first), error["why"])

    def test_a_taken_port_is_refused(self):
        self.start()
        self.configure(runs="others")
        error = self.refusal(http=f"127.0.0.1:{self.port}",
                             socket=str(self.folder / "t"))
        self.assertEqual(error["code"], "service.address")

    def test_an_address_of_the_network_is_refused(self):
        self.assertEqual(self.refusal(http="192.0.2.1:8000")["code"],
                         "service.address")

    def test_a_token_file_that_others_can_read_is_refused(self):
        file = self.folder / "token"
        file.write_text("operator " + "x" * 20)
        file.chmod(0o640)
        error = self.refusal(token_file=str(file))
        self.assertEqual(error["code"], "service.token_file")
        self.assertIn("chmod 600", error["next"])

    def test_mistakes_in_the_configuration_name_the_key(self):
        for more, found in (
                ({"slot": 1}, "did you mean 'slots'?"),
                ({"default": "position"}, "did you mean 'positions'?"),
                ({"runner": "slrum"}, "did you mean 'slurm'?"),
                ({"recipes": {"a": {"job": "missing.json"}}}, "not a file"),
                ({"recipes": {}}, "at least one recipe"),
                ({"slots": -1}, "from 0 to"),
                ({"connections": {"a": "postgresql://u:secret@h/b"}},
                 "holds a password")):
            with self.subTest(more):
                self.configure(**more)
                error = self.refusal()
                self.assertEqual(error["code"], "service.config")
                self.assertIn(found, error["why"])


class Refusing(ServiceCase):
    def setUp(self):
        super().setUp()
        self.start()

    def refused(self, document, status=422, **more):
        body = document if isinstance(document, bytes) else json.dumps(
            {"job_name": "x", **document}).encode()
        found, answer = self.ask("POST", "/api/training/jobs", body, **more)
        self.assertEqual(found, status, answer)
        self.assertEqual(self.client().jobs(), [])
        return answer["error"]

    def test_unknown_names_are_told_with_the_nearest(self):
        for document, code, found in (
                ({"recipe": "postions"}, "service.unknown_recipe",
                 "'positions'"),
                ({"config": {"batchsize": 1}}, "service.unknown_key",
                 "'batch_size'"),
                ({"confg": {}}, "service.unknown_key", "'config'"),
                ({"config": {"dataset_ids": [OTHER[:-1] + "7"]}},
                 "service.unknown_dataset", OTHER)):
            with self.subTest(document):
                error = self.refused(document)
                self.assertEqual(error["code"], code)
                self.assertIn(found, error["next"])

    def test_a_request_names_no_path_no_sql_and_no_section(self):
        for key, value in (
                ("output_dir", "/tmp/x"), ("stage_dir", "/etc"),
                ("source", {"kind": "sqlite", "path": "/etc/passwd"}),
                ("fields", {"x": ["a"]}), ("model", {"kind": "own"}),
                ("loader", {"cache_dir": "/tmp"}),
                ("report_to", ["tensorboard"])):
            with self.subTest(key):
                error = self.refused({"config": {key: [value] if isinstance(
                    value, list) else value}})
                self.assertIn(error["code"], (
                    "service.setting", "settings.value", "manifest.value",
                    "service.unknown_key"))

    def test_values_of_data_sets_are_no_sql(self):
        for value in ("' OR 1=1 --", "\\' OR 1=1 --", "a\nb", ["a"], 1.5,
                      None, {"a": 1}, ""):
            with self.subTest(value):
                self.refused({"config": {"dataset_ids": [value]}})

    def test_bad_values_are_told_by_the_setting(self):
        self.assertEqual(self.refused({"config": {"batch_size": -1}})["code"],
                         "settings.value")
        self.assertEqual(self.refused({"config": {"epochs": []}})["code"],
                         "service.setting")
        self.refused({"config": {"epochs": list(range(1, 102))}})

    def test_what_is_no_request_is_refused(self):
        self.refused(b"{", 400)
        self.refused(b"[]", 422)
        self.refused(b"\xff\xfe", 400)
        self.refused(b"[" * 100_000, 400)
        self.refused(b'{"a":' * 65 + b"1" + b"}" * 65, 400)
        self.refused(b'{"job_name": "x", "config": {"epochs": 1e999}}', 422)
        self.refused(b" " * (1 << 20) + b"{}", 413)

    def test_a_full_queue_is_told(self):
        self.kill()
        self.configure(queue=2, slots=0)
        self.start()
        for _ in range(2):
            self.client().submit("x")
        status, answer = self.ask("POST", "/api/training/jobs",
                                  b'{"job_name": "x"}')
        self.assertEqual((status, answer["error"]["code"]),
                         (429, "service.queue_full"))


if __name__ == "__main__":
    main()
