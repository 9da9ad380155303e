"""penstock doctor: what the machine is and gives, tests of a device, and a
training of ten steps."""
import json
import unittest

from penstock_cli import Case, run

TESTS = ["basics", "memory", "network", "mixed_precision", "libraries"]
CHECKPOINTS = ["device", "settings", "model", "forward", "backward",
               "ten_steps"]


class Doctor(Case):
    def doctor(self, *arguments, **variables):
        return self.run_it("doctor", "--json", *arguments,
                           XDG_CACHE_HOME=str(self.folder / "cache"),
                           **variables)

    def test_shows_the_machine_and_what_it_runs_in(self):
        answer = self.doctor("--device", "cpu")
        self.assertEqual(answer.code, 0, answer.out)
        found = answer.json()
        self.assertIs(found["ok"], True)
        self.assertGreater(found["machine"]["cpus"], 0)
        self.assertLessEqual({"os", "container", "docker", "gpu_driver",
                              "nvidia_container_toolkit", "open_files",
                              "shared_bytes", "locked_bytes",
                              "least_driver", "cache_drive"},
                             set(found["system"]))
        self.assertGreater(found["system"]["cache_drive"]["free_bytes"], 0)
        self.assertEqual(found["system"]["cache_drive"]["folder"],
                         str(self.folder / "cache" / "penstock"))
        self.assertEqual([test["test"] for test in found["tests"]], TESTS)
        for test in found["tests"]:
            self.assertIn(test["state"], ("ok", "n/a"), test)
            self.assertTrue(test["says"])
        for test in found["tests"][:2]:
            self.assertEqual(test["state"], "ok", test)

    def test_says_how_much_memory_may_be_pinned(self):
        answer = self.run_it("doctor", "--device", "cpu",
                             XDG_CACHE_HOME=str(self.folder / "cache"))
        self.assertRegex(answer.out, r"limit of locked or pinned memory: "
                                     r"(no limit|[\d.]+ \w?i?B)")

    def test_measures_the_machine_once_and_keeps_that(self):
        first = self.doctor("--device", "cpu").json()["profile"]
        self.assertGreater(first["memory_bytes_s"], 1e8)
        self.assertGreater(first["cores"], 0)
        kept = self.folder / "cache" / "penstock" / "machine.json"
        self.assertEqual(json.loads(kept.read_text()), first)
        self.assertEqual(self.doctor("--device", "cpu").json()["profile"],
                         first)
        again = self.doctor("--device", "cpu", "--measure").json()["profile"]
        self.assertNotEqual(again["measured"], first["measured"])

    def test_what_holds_work_back_comes_with_a_command(self):
        answer = run("doctor", "--json", "--device", "cpu", cwd=self.folder,
                     prefix=("bash", "-c", "ulimit -n 256; exec \"$@\"",
                             "bash"),
                     XDG_CACHE_HOME=str(self.folder / "cache"))
        [repair] = [repair for repair in answer.json()["repairs"]
                    if "files open" in repair["what"]]
        self.assertIn("256", repair["what"])
        self.assertEqual(repair["next"], "ulimit -n 65536")

    def test_a_device_that_is_not_there_is_not_a_failure(self):
        answer = self.doctor("--device", "cuda")
        for test in answer.json()["tests"]:
            if test["state"] == "n/a":
                self.assertTrue(test["next"], test)

    def test_a_cache_that_cannot_be_written_is_no_end(self):
        (self.folder / "cache").write_text("a file")
        answer = self.doctor("--device", "cpu")
        self.assertIn("why_not", answer.json()["profile"])

    def test_text_is_for_people(self):
        answer = self.run_it("doctor", "--device", "cpu",
                             XDG_CACHE_HOME=str(self.folder / "cache"))
        self.assertEqual(answer.code, 0, answer.err)
        for word in ("processors", "memory, one thread", "drive reads",
                     "tests of cpu", "basics", "parts"):
            self.assertIn(word, answer.out)


class Device(Case):
    def test_one_of_no_such_name_is_refused(self):
        self.refused(self.run_it("doctor", "--device=toaster", "--json"),
                     "request", "settings.value", "--device", "toaster")


class QuickTrain(Case):
    def test_has_six_checkpoints_and_an_exit_code(self):
        answer = self.run_it("doctor", "--quick-train", "--device", "cpu",
                             "--json")
        found = answer.json()
        reached = found["checkpoints"]
        self.assertEqual([c["test"] for c in reached],
                         CHECKPOINTS[:len(reached)])
        for checkpoint in reached:
            self.assertGreaterEqual(checkpoint["seconds"], 0)
            self.assertGreater(checkpoint["resident_bytes"], 0)
        good = all(c["state"] == "ok" for c in reached) and len(reached) == 6
        self.assertEqual(found["ok"], good)
        self.assertEqual(answer.code, 0 if good else 1)

    def test_a_device_of_no_such_name_fails_at_the_first(self):
        answer = self.run_it("doctor", "--quick-train", "--device", "toaster",
                             "--json")
        self.assertEqual(answer.code, 1, answer.out)
        [only] = answer.json()["checkpoints"]
        self.assertEqual((only["test"], only["state"]), ("device", "failed"))
        self.assertIn("toaster", only["says"])


if __name__ == "__main__":
    unittest.main()
