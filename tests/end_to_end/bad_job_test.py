"""Job files that say what cannot be: each error names the place in the job,
what was found and what is allowed."""
import json
import os
import unittest

from penstock_cli import Case, run


class JobFiles(Case):
    def test_a_missing_file(self):
        self.refuse("request", "file.read", "nowhere.json",
                    arguments=["train", "nowhere.json"])

    def test_a_folder_instead_of_a_file(self):
        for verb in ("train", "batch"):
            self.refuse("request", "source.uri", "folder '.'",
                        "none of its files", arguments=[verb, "."])

    def test_text_that_is_no_json_with_line_and_column(self):
        self.write_job('{\n  "source": {"kind" "sqlite"}\n}')
        self.refuse("request", "json.syntax", "job.json", "line 2, column 21")

    def test_an_empty_file(self):
        self.write_job("")
        self.refuse("request", "json.syntax", "job.json", "0 bytes")

    def test_a_file_whose_folder_is_gone(self):
        """A relative path leads nowhere when somebody has removed the folder
        that the program was started in."""
        self.good_start(output={"dir": "runs"})
        gone = self.folder / "gone"
        gone.mkdir()
        start = ["sh", "-c", 'rmdir ../gone && exec "$0" "$@"']
        job, base = self.folder / "job.json", self.folder / "d.sqlite"
        for arguments in (["train", "job.json"], ["train", job],
                          ["batch", job], ["peek", "sqlite:d.sqlite#t"],
                          ["batch", job, "--set", f"source.path={base}",
                           "--out", "out"],
                          ["train", "--resume", "runs/latest"],
                          ["demo", "positions", "--to", "sqlite:new.sqlite"]):
            with self.subTest(arguments=arguments):
                gone.mkdir(exist_ok=True)
                answer = run(*arguments, "--json", cwd=gone, prefix=start)
                self.refused(answer, "request", "file.current_folder",
                             "has been removed", "begins with '/'")
        gone.mkdir(exist_ok=True)
        answer = run("peek", f"sqlite:{base}#t", "--json", cwd=gone,
                     prefix=start)
        self.assertEqual(answer.json()["rows"], 64)

    def test_a_document_that_is_no_object(self):
        self.write_job("[1, 2]")
        self.refuse("request", "settings.type", "the top of the file", "a list",
                    "an object")
        self.refuse("request", "settings.override", "the top of the file",
                    "a list", sets=["train.epochs=2"])

    def test_a_number_beyond_all_types(self):
        self.write_job(json.dumps(self.job()).replace(
            '"seed": 3', '"seed": -720E518'))
        answer = self.run_it("train", "job.json", "--json")
        self.assertEqual(answer.code, 2, answer.out)
        self.assertEqual(answer.json()["error"]["kind"], "request")

    def test_a_setting_that_is_not_utf_8(self):
        """No run that keeps it could be resumed."""
        self.good_start()
        name = os.fsdecode(b"d\xff")
        for key in ("source.path", "output.dir"):
            self.refuse("request", "settings.override", "UTF-8", key,
                        "symbolic link", sets=[f"{key}={name}"])
        self.assertFalse((self.folder / "runs").exists())
        (self.folder / name).mkdir()
        (self.folder / "d.sqlite").rename(self.folder / name / "d.sqlite")
        (self.folder / "link").symlink_to(name)
        self.train("--set", "source.path=link/d.sqlite")

    def test_an_unknown_key_that_is_empty(self):
        self.good_start()
        for change, place in (("loader.=1", 'loader.""'), (".x=1", '""')):
            self.refuse("request", "settings.unknown_key", place,
                        sets=[change])

    def test_an_unknown_key_names_the_nearest_one(self):
        self.good_start()
        for change, place, nearest in (
                ("lodaer.seed=1", "lodaer", "'loader'"),
                ("loader.batchsize=1", "loader.batchsize", "'batch_size'"),
                ("source.tabel=t", "source.tabel", "'table'"),
                ("split.trian=1", "split.trian", "'train'"),
                ("train.epoch=1", "train.epoch", "'epochs'"),
                ("device.stepms=1", "device.stepms", "'step_ms'"),
                ("output.dri=x", "output.dri", "dir"),
                ("fields.y.column_s=[]", "fields.y.column_s", "'columns'"),
                ("fields.heard.json_set.kyes=[]", "fields.heard.json_set.kyes",
                 "'keys'")):
            self.refuse("request", "settings.unknown_key", place, nearest,
                        sets=[change])

    def test_values_out_of_range_or_of_another_type(self):
        self.good_start()
        for change, place, found in (
                ("loader.batch_size=0", "loader.batch_size", "found 0"),
                ("loader.batch_size=1.5", "loader.batch_size", "found 1.5"),
                ('loader.batch_size="8"', "loader.batch_size", 'found "8"'),
                ("loader.shuffle=1", "loader.shuffle", "true or false"),
                ("loader.workers=-1", "loader.workers", "found -1"),
                ("loader.prefetch=-1", "loader.prefetch", "found -1"),
                ("loader.cache=vram", "loader.cache", "auto, device, pinned, ram"),
                ("loader.read=row", "loader.read", "batch, per_sample"),
                ("loader.tail=keep", "loader.tail", "drop, pad, exact"),
                ("train.epochs=0", "train.epochs", "found 0"),
                ("train.max_steps=0", "train.max_steps", "found 0"),
                ("source.on_bad=ignore", "source.on_bad", "stop, skip"),
                ("source.round_trip_ms=-1", "source.round_trip_ms", "found -1"),
                ("source.kind=mysql", "source.kind", "sqlite, postgres"),
                ("source.path=", "source.path", "empty"),
                ("split.train=1.5", "split.train", "found 1.5"),
                ("device.kind=tpu", "device.kind", "auto, cpu, sim, cuda"),
                ("device=tpu", "device", "auto, cpu, sim, cuda"),
                ("device=3", "device", "found 3"),
                ("device.step_ms=-1", "device.step_ms", "found -1"),
                ("device.memory_gib=0", "device.memory_gib", "found 0"),
                ("device.clock=atomic", "device.clock", "wall, virtual"),
                ("output.dir=5", "output.dir", "found 5"),
                ("fields.heard.json_set.max=0", "fields.heard.json_set.max",
                 "found 0"),
                ("fields.heard.json_set.min=4", "fields.heard.json_set.min",
                 "found 4"),
                ("fields.heard.json_set.overflow=last",
                 "fields.heard.json_set.overflow", "first, strongest, error"),
                ("fields.heard.json_set.overflow=strongest",
                 "fields.heard.json_set.sort_by", "missing"),
                ("fields.heard.json_set.sort_by=a",
                 "fields.heard.json_set.sort_by", "strongest"),
                ("fields.heard.json_set.keys=[]", "fields.heard.json_set.keys",
                 "empty"),
                ('fields.heard.json_set.keys=["a", "a"]',
                 "fields.heard.json_set.keys", "twice"),
                ("fields.y.dtype=bfloat16", "fields.y.dtype", "float32")):
            with self.subTest(change=change):
                self.refuse("request", "settings.value", place, found,
                            sets=[change])

    def test_a_section_that_is_no_object(self):
        self.good_start()
        for section in ("source", "fields", "loader", "train", "output"):
            self.refuse("request", "settings.type", section, "an integer",
                        "an object", sets=[section + "=7"])

    def test_settings_that_contradict_each_other(self):
        self.good_start()
        for sets, place in (
                (["split.train=0.9", "split.val=0.2"], "split"),
                (["loader.read=per_sample", "loader.cache=ram"], "loader.read"),
                (['fields.y={"columns": ["y"], "dtype": "int64", '
                  '"standardize": true}'], "fields.y.standardize"),
                (['fields.weight={"columns": ["y"]}'], "fields.weight"),
                (['fields.heard_mask={"columns": ["y"]}'], "heard_mask"),
                (['fields.z={"columns": ["heard"]}'], "fields.z.columns"),
                (["fields={}"], "fields")):
            with self.subTest(sets=sets):
                self.refuse("request", "settings.value", place, sets=sets)

    def test_missing_sections(self):
        for section in ("source", "fields"):
            self.write_job(self.job(**{section: None}))
            self.refuse("request", "settings.value", section, "missing")

    def test_a_source_may_be_a_uri(self):
        self.good_start(source="sqlite:d.sqlite#t")
        self.succeed("train", "job.json")
        self.write_job(self.job(source="d.sqlite"))
        self.refuse("request", "source.uri", "sqlite:d.sqlite#TABLE")

    def test_a_model_needs_the_trainer_or_no_simulation(self):
        self.good_start(model={"kind": "set_position"})
        answer = self.run_it("train", "job.json", "--json")
        self.assertEqual(answer.code, 2, answer.out)
        self.assertIn("model", answer.json()["error"]["where"] +
                      answer.json()["error"]["what"])

    def test_seconds_since_1970_need_more_than_float32(self):
        self.database([(i, "2024-05-06T07:08:09Z") for i in range(64)],
                      "id INTEGER PRIMARY KEY, at TIMESTAMP")
        self.write_job(self.job(fields={"at": {"columns": ["at"]}}))
        self.refuse("request", "fields.timestamp", "fields.at", "'at'",
                    "float64")
        self.train("--set", "fields.at.dtype=float64")
        self.train("--set", "fields.at.standardize=true")

    def test_text_is_called_text(self):
        self.database([(i, "Paris") for i in range(64)],
                      "id INTEGER PRIMARY KEY, city VARCHAR(9)")
        self.write_job(self.job(fields={"city": {"columns": ["city"]}}))
        for sets in ([], ["fields.city.dtype=int64"]):
            error = self.refuse(
                "request", "fields.text", "fields.city",
                "column 'city' (VARCHAR(9)) is text", sets=sets)
            self.assertNotIn("timestamp", json.dumps(error))
        self.refuse("transform", "data.bad_rows", "'Paris'",
                    sets=["fields.city.dtype=float64"])

    def test_gpu_means_cuda(self):
        self.good_start()
        errors = [self.run_it("train", "job.json", "--json", "--set",
                              "device=" + name).out for name in
                  ("cuda", "gpu")]
        if "error" not in errors[0]:
            self.skipTest("there is a GPU")
        self.assertEqual(errors[0], errors[1])

    def test_nothing_is_written_when_the_job_is_refused(self):
        self.good_start()
        self.refuse("request", "settings.value", "loader.seed",
                    sets=["loader.seed=-1"])
        self.assertFalse((self.folder / "runs").exists())


class Overrides(Case):
    def settings(self, *sets):
        arguments = [a for change in sets for a in ("--set", change)]
        return self.train(*arguments)["settings"]

    def test_json_is_json_and_all_else_is_text(self):
        self.good_start()
        settings = self.settings("loader.batch_size=8", "loader.shuffle=false",
                                 "output.dir=else where", "loader.tail=pad")
        self.assertEqual(settings["loader"]["batch_size"], 8)
        self.assertIs(settings["loader"]["shuffle"], False)
        self.assertEqual(settings["loader"]["tail"], "pad")
        self.assertEqual(settings["output"]["dir"], "else where")
        self.assertTrue((self.folder / "else where" / "latest").is_symlink())

    def test_the_last_one_counts_and_an_equals_sign_may_follow(self):
        self.good_start()
        settings = self.settings("loader.seed=1", "loader.seed=2",
                                 "source.where=id>=3")
        self.assertEqual(settings["loader"]["seed"], 2)
        self.assertEqual(settings["source"]["where"], "id>=3")

    def test_a_device_given_by_name_keeps_it(self):
        self.good_start(device="sim")
        settings = self.settings("device.step_ms=0.5", "device.clock=virtual")
        self.assertEqual(settings["device"], {"kind": "sim", "step_ms": 0.5,
                                              "clock": "virtual"})
        self.assertEqual(settings["device_used"], "sim")

    def test_null_takes_a_setting_back(self):
        self.good_start()
        report = self.train("--set", "loader.seed=null")
        self.assertEqual(report["settings"]["loader"]["seed"], 0)

    def test_a_place_that_holds_no_object_is_refused(self):
        self.good_start()
        self.refuse("request", "settings.override", "loader.seed", "an integer",
                    sets=["loader.seed.deep=1"])

    def test_what_is_no_assignment_is_refused(self):
        self.good_start()
        self.refuse("request", "settings.override", "loader.seed",
                    "section.key=value", sets=["loader.seed"])
        self.refuse("request", "settings.override", "section.key=value",
                    sets=["=3"])


if __name__ == "__main__":
    unittest.main()
