"""Exit codes, one document on standard output, everything else on standard
error."""
import json
import unittest

from penstock_cli import Case, run


class ExitCodes(Case):
    def test_0_for_help_which_is_also_what_no_argument_gives(self):
        self.assertEqual(self.succeed().out, self.succeed("--help").out)
        self.assertIn("Exit codes: 0 ", self.succeed().out)

    def test_0_when_the_job_is_done(self):
        self.good_start()
        self.assertGreater(self.train()["steps"], 0)

    def test_2_for_the_users_settings(self):
        self.good_start()
        self.refuse("request", "settings.value", "loader.batch_size", "found 0",
                    "expected 1 to", sets=["loader.batch_size=0"])

    def test_3_for_the_source(self):
        self.write_job()
        self.refuse("source", "sqlite.missing", "d.sqlite")

    def test_4_for_what_the_data_says(self):
        self.database([(1, "[{]", 0.0)])
        self.write_job()
        self.refuse("transform", "data.bad_rows", "row 1", "'heard'")

    def test_5_for_a_device_that_is_not_there(self):
        self.good_start(device="cuda")
        answer = self.run_it("train", "job.json", "--json")
        if answer.code == 0:
            self.skipTest("there is a GPU")
        code = answer.json()["error"]["code"]
        self.assertIn(code, ("device.not_built", "device.no_driver",
                             "device.no_gpu"))
        self.refused(answer, "device", code, "cuda")

    def test_6_when_a_memory_limit_is_reached(self):
        """Batches, then rows, that do not fit the device's memory."""
        self.good_start()
        for cache in ("ram", "device", "auto"):
            answer = self.run_it(
                "train", "job.json", "--json", "--set", "loader.cache=" + cache,
                "--set", "device.memory_gib=0.001", "--set", "loader.tail=pad",
                "--set", "loader.batch_size=100000")
            self.assertEqual(answer.code, 6, answer.out + answer.err)
            code = answer.json()["error"]["code"]
            self.assertIn(code, ("device.out_of_memory", "cache.no_room"))
            self.refused(answer, "out_of_memory", code, "device", "MiB")

    def test_6_when_the_wished_tier_has_no_room(self):
        self.good_start()
        self.refuse("out_of_memory", "cache.no_room", "64 rows", "loader.cache",
                    sets=["device.memory_gib=0.001", "loader.batch_size=100000",
                          "loader.tail=pad", "loader.cache=device"])


class Outputs(Case):
    def test_the_report_is_the_only_thing_on_standard_output(self):
        self.good_start()
        answer = self.succeed("train", "job.json", "--json")
        self.assertEqual(answer.json()["steps"], 4)
        self.assertIn("where the rows will be stored", answer.err)

    def test_without_json_a_person_gets_a_summary_that_names_the_report(self):
        self.good_start()
        answer = self.succeed("train", "job.json")
        self.assertIn("4 steps", answer.out)
        self.assertIn("/report.json", answer.out)
        with self.assertRaises(ValueError):
            json.loads(answer.out)

    def test_a_report_that_cannot_be_told_is_no_success(self):
        self.good_start()
        with open("/dev/full", "w", encoding="utf-8") as full:
            answer = self.run_it("train", "job.json", "--json", stdout=full)
        self.assertEqual(answer.code, 2)
        self.assertIn("cannot write the result at standard output", answer.err)
        saved = self.folder / "runs" / "latest" / "report.json"
        self.assertEqual(json.loads(saved.read_text())["steps"], 4)

    def test_errors_in_the_arguments_are_documents_too(self):
        for arguments, names in (
                (["train", "--json"], ["--resume"]),
                (["train", "a", "--resume", "b", "--json"], ["--resume"]),
                (["train", "--json", "a.json", "--bogus"], ["--bogus"]),
                (["batch", "--json"], ["job"]),
                (["batch", "a.json", "--epoch", "x", "--json"], ["--epoch"]),
                (["batch", "a.json", "--epoch", "-1", "--json"], ["--epoch"]),
                (["batch", "a.json", "--split", "tests", "--json"], ["train"]),
                (["frobnicate", "--json"], ["frobnicate"]),
                (["--json"], ["--help"])):
            with self.subTest(arguments=arguments):
                answer = run(*arguments, cwd=self.folder)
                self.assertEqual(answer.code, 2, answer.err)
                error = answer.json()["error"]
                self.assertEqual(error["kind"], "request")
                for name in names:
                    self.assertIn(name, " ".join(error.values()))

    def test_steps_and_ranks_that_mean_nothing_are_refused(self):
        self.good_start()
        for steps in ("5", "5:3", "-1:3", "a:b", "1:2x", ":", "1:",
                      "99999999999999999999:1"):
            self.refused(self.run_it("batch", "job.json", "--json",
                                     "--steps=" + steps),
                         "request", "cli.steps", "'" + steps + "'")
        for rank, world in ((1, 1), (-1, 2), (0, 0), (2, 2)):
            self.refused(self.run_it("batch", "job.json", "--json",
                                     f"--rank={rank}", f"--world={world}"),
                         "request", "cli.rank", str(rank), str(world))

    def test_numbers_beyond_their_range_are_refused(self):
        for verb, option, found in (
                ("batch job.json", "--epoch", 2**63),
                ("batch job.json", "--epoch", -1),
                ("batch job.json", "--epoch", "1.5"),
                ("demo positions --to sqlite:d.db", "--rows", 0),
                ("demo positions --to sqlite:d.db", "--rows", 2**63),
                ("demo positions --to sqlite:d.db", "--seed", 2**64),
                ("batch job.json", "--rank", "0x0"),
                ("batch job.json", "--world", "0x2"),
                ("quickstart", "--epochs", 2**63)):
            self.refused(self.run_it(*verb.split(), "--json",
                                     f"{option}={found}"),
                         "request", "cli.arguments", option, f"'{found}'",
                         "expected a whole number from")
        self.refused(self.run_it("batch", "job.json", "--rank", "", "--json"),
                     "request", "cli.arguments", "--rank")
        for option, most in (("--step-ms", 3600000),
                             ("--round-trip-ms", 60000)):
            for found in ("nan", "inf", "-1", most + 1):
                self.refused(self.run_it("quickstart", "--json",
                                         f"{option}={found}"),
                             "request", "cli.arguments", option,
                             f"expected a number from 0 to {most}")

    def test_a_number_with_zeros_in_front_is_decimal(self):
        self.good_start()
        [line] = self.succeed("batch", "job.json", "--epoch", "010").lines()
        self.assertEqual(line["epoch"], 10)

    def test_help_says_what_the_codes_mean_and_shows_examples(self):
        text = run("--help").out
        for piece in ("Exit codes", "130", "143", "Examples"):
            self.assertIn(piece, text)
        for verb in ("train", "batch", "peek"):
            self.assertIn("Example: penstock " + verb, run(verb, "--help").out)


class LogLevel(Case):
    def test_is_quiet_unless_asked(self):
        self.good_start()
        self.assertNotIn("penstock info", self.succeed("train", "job.json").err)

    def test_follows_the_variable_and_the_option_beats_it(self):
        self.good_start()
        told = self.succeed("train", "job.json", "--json", PENSTOCK_LOG="info")
        self.assertIn("penstock info: run folder " + told.json()["run"],
                      told.err)
        told = self.succeed("--log", "info", "train", "job.json",
                            PENSTOCK_LOG="error")
        self.assertIn("penstock info", told.err)
        told = self.succeed("--log", "off", "train", "job.json",
                            PENSTOCK_LOG="info")
        self.assertNotIn("penstock info", told.err)

    def test_an_unknown_level_is_heard_of(self):
        self.good_start()
        told = self.succeed("train", "job.json", PENSTOCK_LOG="loud")
        self.assertIn("PENSTOCK_LOG is 'loud'", told.err)
        told = self.run_it("--log", "loud", "train", "job.json", "--json")
        self.refused(told, "request", "cli.log", "'loud'", "debug, info")


if __name__ == "__main__":
    unittest.main()
