"""Several sources of different kinds, mixed by their weights."""
import csv
import json
import struct
import unittest

from penstock_cli import Case, has_part, read_safetensors

KINDS = ("oak", "ash", "elm")


@unittest.skipUnless(has_part("csv"), "this build reads no CSV")
class Mixed(Case):
    """A table of SQLite with 60 rows, a CSV file with 200, lines of JSON with
    50: of different columns for the same tensors."""

    def setUp(self):
        super().setUp()
        self.database([(i, i / 4, KINDS[i % 2]) for i in range(60)],
                      declared="id INTEGER PRIMARY KEY, a REAL, kind TEXT")
        with open(self.folder / "d.csv", "w", newline="") as file:
            csv.writer(file).writerows(
                [("a", "kind"), *((1000 + i, KINDS[i % 3])
                                  for i in range(200))])
        with open(self.folder / "d.jsonl", "w") as file:
            for i in range(50):
                print(json.dumps({"b": -i, "kind": "elm"}), file=file)
        self.write_job(self.mixed())

    def mixed(self, weights=(1, 2, 1), **sections):
        fields = {"x": {"column": "a", "standardize": True},
                  "kind": {"category": {"column": "kind"}}}
        sources = [
            {"source": "sqlite:d.sqlite#t"},
            {"source": {"kind": "csv", "path": "d.csv",
                        "columns": {"a": "float64"}}},
            {"source": "d.jsonl", "fields": {
                "kind": fields["kind"],
                "x": {"column": "b", "standardize": True}}}]
        for source, weight in zip(sources, weights):
            source["weight"] = weight
        document = self.job(source=None, sources=sources, fields=fields)
        document["loader"] = {"batch_size": 16, "seed": 3,
                              "cache_dir": "stores"}
        for name, section in sections.items():
            document[name] = ({**document.get(name, {}), **section}
                              if isinstance(section, dict) else section)
        return document

    def digests(self, *arguments, **sections):
        self.write_job(self.mixed(**sections))
        return [(line["order_digest"], line["bytes_digest"])
                for line in self.batches("--steps", "0:12", *arguments)]

    def test_an_epoch_has_what_the_weights_promise(self):
        self.write_job(self.mixed(loader={"exhausted": "repeat",
                                          "tail": "exact"}))
        plan = self.succeed("train", "job.json", "--plan", "--json").json()
        self.assertEqual(plan["epoch_rows"], 400)
        self.assertEqual([source["epoch_rows"] for source in plan["sources"]],
                         [100, 200, 100])
        lines = self.batches("--steps", "0:25", "--out", "batches")
        sources = [key.split(":")[0] for line in lines for key in line["keys"]]
        self.assertEqual({name: sources.count(name) for name in "012"},
                         {"0": 100, "1": 200, "2": 100})
        first = read_safetensors(
            sorted((self.folder / "batches").iterdir())[0])
        self.assertEqual(list(first), ["x", "kind", "source"])
        dtype, shape, data = first["source"]
        self.assertEqual((dtype, shape), ("I32", [16]))
        self.assertEqual(
            [str(number) for number in struct.unpack("<16i", data)],
            [key.split(":")[0] for key in lines[0]["keys"]])
        told = self.succeed("train", "job.json", "--plan").out
        self.assertIn("200 of the 200 train rows of sources[1] (csv), weight 2",
                      told)

    def test_the_plan_tells_how_each_source_is_prepared(self):
        fitted = {"form": "scanned",
                  "reason": "field 'x' is fitted over several sources"}
        plan = self.succeed("train", "job.json", "--plan", "--json").json()
        self.assertNotIn("preparation", plan)
        self.assertEqual(
            [source["preparation"] for source in plan["sources"]],
            [fitted, fitted,
             {**fitted, "reason": "field 'kind' is fitted over several "
                                  "sources"}])
        self.assertIn(
            "sources[2]: the rows are scanned before the first batch: "
            "field 'kind' is fitted",
            self.succeed("train", "job.json", "--plan").out)
        report = self.train()
        self.assertEqual(report["dataset"]["sources"][0]["preparation"],
                         fitted)

    def test_neither_workers_nor_tiers_nor_ranks_change_a_byte(self):
        for exhausted in ("stop", "repeat"):
            same = {"exhausted": exhausted, "tail": "pad"}
            expected = self.digests(loader={**same, "workers": 0,
                                            "cache": "ram"})
            for changes in ({"workers": 1}, {"workers": 2, "cache": "none"},
                            {"workers": 8}, {"cache": "disk"},
                            {"cache": "disk", "workers": 2},
                            {"cache": {"ram_gib": 0.001, "disk_gib": 0}}):
                self.assertEqual(self.digests(loader={**same, **changes}),
                                 expected, changes)
            self.assertEqual(self.digests(loader=same, device="cpu"), expected)
            whole = [key for line in self.batches("--steps", "0:12")
                     for key in line["keys"]]
            for world in (2, 3):
                ranked = [self.batches("--steps", "0:12", "--rank", rank,
                                       "--world", world)
                          for rank in range(world)]
                self.assertEqual(
                    [key for step in zip(*ranked) for line in step
                     for key in line["keys"]], whole)

    def test_it_goes_on_at_every_batch(self):
        self.write_job(self.mixed(loader={"exhausted": "repeat",
                                          "tail": "exact"},
                                  train={"epochs": 3}))
        found = self.succeed("verify-resume", "job.json", "--steps", "51",
                             "--points", "51", "--chains", "2",
                             "--json").json()
        self.assertEqual((found["divergences"], found["points"]), (0, 51))
        self.assertGreater(found["restarts"], 0)

    def test_a_run_is_resumed_and_says_what_it_read(self):
        self.write_job(self.mixed(train={"max_steps": 7, "epochs": 3}))
        whole = self.train()
        self.assertEqual([s["epoch_rows"] for s in
                          whole["dataset"]["sources"]], [50, 100, 50])
        self.assertEqual(whole["dataset"]["sources"][1]["rows"], 200)
        self.assertEqual(whole["dataset"]["epoch_rows"], 200)
        self.assertEqual({stage["source"] for stage in whole["prepare"]},
                         {0, 1, 2})
        statistics = json.loads(
            (self.folder / whole["run"] / "statistics.json").read_text())
        self.assertEqual(statistics["kind"]["classes"], sorted(KINDS))
        self.assertNotIn("x", statistics)
        self.assertEqual(statistics["sources"][0],
                         statistics["sources"][1], "fitted over both")
        self.assertEqual(statistics["sources"][0]["x"]["a"]["count"], 260)
        self.assertEqual(statistics["sources"][2]["x"]["b"]["count"], 50)
        more = self.succeed("train", "--resume", whole["run"], "--set",
                            "train.max_steps=20", "--json").json()
        self.assertEqual(more["steps"], 13)
        self.refused(
            self.run_it("train", "--resume", more["run"], "--json", "--set",
                        "loader.exhausted=repeat", "--set",
                        "train.max_steps=30"),
            "request", "resume.other_data")
        state = json.loads(
            (self.folder / more["run"] / "state.json").read_text())
        self.assertEqual(state["order"]["sources"][2],
                         {"samples": 50, "taken": 50})

    def test_rows_that_cannot_be_used_are_named_with_their_source(self):
        with open(self.folder / "d.csv", "a") as file:
            print("much,oak", file=file)
        found = self.run_it("check", "job.json", "--json")
        self.assertEqual(found.code, 4, found.err)
        self.assertEqual(found.json()["bad_rows"], 1)
        [bad] = found.json()["bad"]
        self.assertEqual((bad["source"], bad["column"]), (1, "a"))
        self.assertEqual([s["rows"] for s in found.json()["sources"]],
                         [60, 201, 50])
        self.assertIn("sources[1], row", self.run_it("check", "job.json").out)
        job = self.mixed(train={"max_steps": 2})
        job["sources"][1]["source"]["on_bad"] = "skip"
        self.write_job(job)
        report = self.train()
        self.assertEqual(report["dataset"]["sources"][1]["left_out"], 1)
        [line] = (self.folder / report["run"] / "quarantine.jsonl"
                  ).read_text().splitlines()
        self.assertEqual(json.loads(line)["source"], 1)

    def test_what_is_kept_on_disk_is_explained(self):
        self.write_job(self.mixed(loader={"cache": "disk"}))
        why = self.succeed("cache", "why", "job.json", "--json").json()
        self.assertEqual([s["hit"] for s in why["sources"]], [False] * 3)
        self.train()
        why = self.succeed("cache", "why", "job.json", "--json").json()
        self.assertEqual([s["hit"] for s in why["sources"]], [True] * 3)
        self.assertIn("sources[2]: hit",
                      self.succeed("cache", "why", "job.json").out)
        with open(self.folder / "d.jsonl", "a") as file:
            print('{"b": 5, "kind": "fir"}', file=file)
        why = self.succeed("cache", "why", "job.json", "--json").json()
        self.assertEqual([s["hit"] for s in why["sources"]], [False] * 3,
                         "a class more, everywhere")

    def test_mistakes_are_named(self):
        def refuse(code, *names, **sections):
            self.write_job(self.mixed(**sections))
            self.refuse("request", code, *names)

        refuse("settings.value", "sources", "leave one of the two out",
               source={"kind": "sqlite", "path": "d.sqlite"})
        refuse("settings.value", "loader.weights", '"weight": 2',
               loader={"weights": "a"})
        refuse("settings.value", "loader.balance", loader={"balance": "kind"})
        refuse("settings.value", "sources[1].weight", "1e-06",
               weights=(1, 0, 1))
        refuse("settings.value", "model", "one source",
               model={"kind": "tabular", "target": "kind"})
        job = self.mixed()
        job["sources"][2]["fields"]["z"] = {"column": "b"}
        self.write_job(job)
        self.refuse("request", "mixing.fields", "sources[2]", "'z'")
        job = self.mixed()
        job["sources"][2]["fields"]["x"]["dtype"] = "float64"
        self.write_job(job)
        self.refuse("request", "mixing.tensors", "sources[2]", "float64")
        job = self.mixed()
        job["sources"][2]["fields"]["kind"] = {"category": {
            "column": "kind", "min_count": 2}}
        self.write_job(job)
        self.refuse("request", "mixing.classes", "sources[2]", "'kind'")
        job = self.mixed()
        job["sources"][0]["split"] = {"train": 0, "val": 1}
        self.write_job(job)
        self.refuse("request", "mixing.empty", "sources[0]")
        self.write_job(self.mixed(fields={"source": {"column": "a"}}))
        self.refuse("request", "settings.value", "'source'")
        self.write_job(self.job(loader={"exhausted": "stop"}))
        self.refuse("request", "settings.value", "loader.exhausted")
        refuse("mixing.cache", "loader.cache", loader={"cache": "device"})

    def test_passwords_are_not_kept(self):
        job = self.mixed()
        job["sources"].append({"source": {
            "kind": "postgres", "uri": "postgresql://me:hush@nowhere.invalid/x",
            "table": "t"}})
        self.write_job(job)
        answer = self.run_it("train", "job.json", "--json")
        self.assertNotEqual(answer.code, 0)
        self.assertNotIn("hush", answer.out + answer.err)
        for path in self.folder.rglob("*.json"):
            if path.name != "job.json":
                self.assertNotIn("hush", path.read_text(), path)


if __name__ == "__main__":
    unittest.main()
