"""Folders, tar files and columns of pictures: the same batches wherever they come
from, with any number of workers and on any device; what is wrong is named."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import tarfile
import unittest
from unittest import mock

from penstock_cli import Case, has_library, read_safetensors

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/images"
PICTURES = sorted(p for p in DATA.iterdir()
                  if p.suffix in (".jpg", ".png", ".webp"))
DRAWN = {"train": "random_resized_crop", "flip": 0.5}
FIELDS = {"x": {"image": {"size": [10, 12], "resize": 16, **DRAWN,
                          "record_draws": True}},
          "y": {"category": {"column": "class", "unknown": "error"}}}
PLACES = [{"workers": workers} for workers in (0, 1, 2, 8)]


@unittest.skipUnless(has_library("penstock_images"),
                     "built without libjpeg, libpng or libwebp")
class Images(Case):
    def setUp(self):
        super().setUp()
        self.photos = self.folder / "photos"
        for i, path in enumerate(PICTURES):
            of_class = self.photos / f"class{i % 3}"
            of_class.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, of_class / path.name)

    def names(self):
        return sorted(str(p.relative_to(self.photos))
                      for p in self.photos.rglob("*") if p.is_file())

    def images(self, source=None, loader=None, **sections):
        return self.write_job(self.job(
            source={"kind": "images", "path": "photos", **(source or {})},
            fields=sections.pop("fields", FIELDS),
            loader={"batch_size": 8, "seed": 3, **(loader or {})}, **sections))

    def tensors(self, *arguments):
        """The digests of an epoch, and the tensors of its first batch."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        lines = self.batches("--steps", "0:5", "--out", str(out), *arguments)
        first = read_safetensors(sorted(out.iterdir())[0])
        return [line["bytes_digest"] for line in lines], lines[0]["keys"], first

    def test_any_number_of_workers_any_device_the_same_batches(self):
        self.images()
        expected = self.tensors()[0]
        for device in ({"kind": "cpu"},
                       {"kind": "sim", "step_ms": 1, "clock": "virtual"}):
            for workers in (0, 1, 2, 8):
                with self.subTest(device=device["kind"], workers=workers):
                    self.images(loader={"workers": workers}, device=device)
                    self.assertEqual(self.tensors()[0], expected)
        for cache in ("ram", "none"):
            with self.subTest(cache=cache):
                self.images(loader={"cache": cache})
                self.assertEqual(self.tensors()[0], expected)

    def test_a_device_finishes_kept_pictures_to_the_same_bytes(self):
        image = {**FIELDS["x"]["image"], "dtype": "float32",
                 "record_draws": False,
                 "store": {"form": "decoded", "max_side": 40}}
        on_host = {**FIELDS, "x": {"image": image}}
        on_device = {**FIELDS, "x": {"image": {**image, "finish": "device"}}}
        self.images(fields=on_host, loader={"cache": "ram"})
        expected = self.tensors()[0]
        sim = {"kind": "sim", "clock": "virtual"}
        says = {"cpu": "on the host: host memory is the device's",
                "sim": "on the device", "none": "read by position"}
        for device, cache, workers in (
                ("cpu", "ram", 2), ("sim", "ram", 0), ("sim", "ram", 1),
                ("sim", "ram", 8), ("sim", "disk", 2), ("sim", "device", 2),
                ("sim", "none", 2)):
            with self.subTest(device=device, cache=cache, workers=workers):
                self.images(fields=on_device, device=device if device == "cpu"
                            else sim,
                            loader={"cache": cache, "workers": workers,
                                    "cache_dir": str(self.folder / "cache")})
                self.assertEqual(self.tensors()[0], expected)
                plan = self.succeed("train", "job.json", "--plan",
                                    "--json").json()["plan"]
                self.assertEqual(len(plan["notes"]), 1)
                self.assertIn("field 'x' is finished ", plan["notes"][0])
                self.assertIn(says.get(cache, says[device]), plan["notes"][0])

    def test_a_device_decodes_kept_files_to_the_same_bytes(self):
        image = {**FIELDS["x"]["image"], "dtype": "float32",
                 "record_draws": False}
        on_device = {**FIELDS, "x": {"image": {**image, "decode": "device"}}}
        self.images(fields={**FIELDS, "x": {"image": image}})
        expected = self.tensors()[0]
        for device, cache, says in (
                ("cpu", "ram", "on the host: host memory is the device's"),
                ("sim", "ram", "on the device"),
                ("sim", "auto", "on the host: the size of rows"),
                ("sim", "disk", "on the device")):
            with self.subTest(device=device, cache=cache):
                self.images(fields=on_device,
                            device={"kind": device, **(
                                {"clock": "virtual"} if device == "sim"
                                else {})},
                            loader={"cache": cache, "workers": 2,
                                    "cache_dir": str(self.folder / "cache")})
                self.assertEqual(self.tensors()[0], expected)
                plan = self.succeed("train", "job.json", "--plan",
                                    "--json").json()["plan"]
                self.assertIn(f"field 'x' is finished {says}",
                              plan["notes"][0])

    def test_a_plan_is_that_of_each_rank(self):
        self.images(train={"epochs": 9})
        for ranks, expected in (
                ({}, ["kept when it is first made"]),
                ({"WORLD_SIZE": "2"},
                 ["each of 2 ranks; the number of ranks on this machine is unknown",
                  "in each rank", "kept by each rank when it first gets the row"]),
                ({"WORLD_SIZE": "2", "MPI_LOCALNRANKS": "1",
                  "SLURM_NTASKS_PER_NODE": "2"},
                 ["each of 2 ranks; no other rank runs on this machine"]),
                ({"WORLD_SIZE": "2", "SLURM_NTASKS_PER_NODE": "2(x3)"},
                 ["each of 2 ranks; the number of ranks on this machine is unknown"]),
                ({"WORLD_SIZE": "2", "SLURM_NTASKS_PER_NODE": "2"},
                 ["each of 2 ranks; 2 of them run on this machine and share",
                  "(1/2 of "]),
                ({"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"},
                 ["each of 8 ranks; 4 of them run on this machine and share",
                  "is made again in every epoch", "(1/4 of "])):
            with self.subTest(**ranks), mock.patch.dict(os.environ, ranks):
                told = self.succeed("train", "job.json", "--plan").out
                for text in expected:
                    self.assertIn(text, told)
                self.assertEqual("ranks" in told, bool(ranks))
                self.assertEqual("(1/" in told, "and share its memory" in
                                 told)

    def test_augmented_pictures_depend_on_the_sample_alone(self):
        image = {**FIELDS["x"]["image"], "dtype": "float32", "augment": [
            {"rotation": {"degrees": 20}}, "trivial_augment_wide",
            {"color_jitter": {"brightness": 0.4, "hue": 0.1}},
            {"gaussian_blur": {"kernel_size": 3}}, "random_erasing"]}
        fields = {**FIELDS, "x": {"image": image}}
        mixed = {"operations": [{"cutmix": ["x"], "labels": ["y"]}]}
        digests = set()
        for workers in (0, 1, 2, 8):
            for cache in ("ram", "none"):
                self.images(loader={"workers": workers, "cache": cache, **mixed},
                            fields=fields)
                found, keys, first = self.tensors()
                digests.add(tuple(found))
        self.assertEqual(len(digests), 1)
        self.assertEqual(first["x_augment"][:2], ("F64", [8, 8, 8]))
        self.assertEqual(first["y_mixed"][:2], ("I64", [8]))
        changes = struct.unpack(f"<{8 * 8 * 8}d", first["x_augment"][2])
        self.assertEqual(changes[0::64], (1.0,) * 8)

    def test_boxes_of_a_data_base_move_with_their_pictures(self):
        base = sqlite3.connect(self.folder / "d.sqlite")
        base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, photo BLOB, "
                     "boxes TEXT)")
        photo = (DATA / "restarts.jpg").read_bytes()  # 50 x 40 pixels
        for i in range(9):
            base.execute("INSERT INTO t VALUES (?, ?, ?)",
                         (i, photo, json.dumps([[0, 0, 50, 40, i]])))
        base.commit()
        image = {"column": "photo", "size": [10, 12], **DRAWN}
        fields = {"x": {"image": image},
                  "b": {"boxes": {"column": "boxes", "most": 2, "image": image}}}
        self.write_job(self.job(fields=fields, loader={"batch_size": 8}))
        _, keys, first = self.tensors()
        self.assertEqual(first["b"][:2], ("F32", [8, 2, 4]))
        # All of a picture is all of what is cropped from it.
        boxes = struct.unpack("<64f", first["b"][2])
        self.assertEqual(boxes, (0.0, 0.0, 12.0, 10.0, 0, 0, 0, 0) * 8)
        classes = struct.unpack("<16q", first["b_class"][2])
        self.assertEqual(classes[0::2], tuple(keys))
        self.assertEqual(set(classes[1::2]), {-1})
        base.execute("UPDATE t SET boxes = '[[0, 0, 60, 40]]' WHERE id = 3")
        base.commit()
        base.close()
        self.refused(self.run_it("batch", "job.json", "--json", "--steps", "0:2"),
                     "transform", "data.bad_rows", "60, 40", "outside")

    def test_a_contact_sheet_shows_what_training_gets(self):
        for name, start in (("sheet.png", b"\x89PNG"), ("sheet.html", b"<!doc")):
            self.run_it("peek", "images:photos", "--sheet", name)
            self.assertTrue(
                (self.folder / name).read_bytes().startswith(start))
        self.assertIn("label class1", (self.folder / "sheet.html").read_text())
        self.refused(self.run_it("peek", "images:photos", "--json", "--sheet",
                                 "sheet.bmp"), "request", "images.sheet")

    def test_a_sheet_of_a_job_has_what_the_model_gets(self):
        fields = {"x": {"image": {"size": [6, 9], "dtype": "float32"}},
                  "kind": {"category": {"column": "class"}}}
        self.images(fields=fields, device={"kind": "sim"})
        self.succeed("peek", "job.json", "--sheet", "sheet.html")
        page = (self.folder / "sheet.html").read_text()
        self.assertEqual(page.count("<img"), 32)
        self.assertRegex(page, r"x_draw \d+ \d+ \d+ \d+ \d, kind class[012]")

    def test_a_sheet_of_a_table_has_the_column_that_is_named(self):
        with sqlite3.connect(self.folder / "t.sqlite") as db:
            db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, photo BLOB)")
            db.executemany("INSERT INTO t (photo) VALUES (?)", [
                (path.read_bytes(),) for path in PICTURES[:3]])
        db.close()
        self.succeed("peek", "sqlite:t.sqlite", "--sheet", "sheet.html",
                     "--column", "photo")
        self.assertEqual(
            (self.folder / "sheet.html").read_text().count("<img"), 3)
        self.refused(self.run_it("peek", "sqlite:t.sqlite", "--json", "--sheet",
                                 "sheet.html"), "request", "images.show",
                     "no column 'image'", "id, photo")

    def test_stages_are_named_after_what_they_do(self):
        for cache, form, name in (("none", "encoded", "decode"),
                                  ("none", "decoded", "transform"),
                                  ("ram", "encoded", "decode kept rows")):
            with self.subTest(cache=cache, form=form):
                self.images(fields={"x": {"image": {
                    "size": 8, "store": {"form": form}}}},
                    loader={"cache": cache}, train={"epochs": 1})
                self.assertIn(name, [stage["name"] for stage in
                                     self.train()["stages"]])

    def test_what_fast_costs_is_told(self):
        self.images(fields={"x": {"image": {"size": 8, "parity": "fast"}}})
        told = self.succeed("train", "job.json", "--plan").err
        self.assertIn("differ by 1.5 on average", told)

    def test_classes_are_the_sorted_names_of_folders(self):
        self.images()
        _, keys, first = self.tensors()
        classes = struct.unpack(f"<{len(keys)}q", first["y"][2])
        self.assertEqual([f"class{c}" for c in classes],
                         [key.split("/")[0] for key in keys])
        self.assertEqual(first["x"][:2], ("U8", [8, 3, 10, 12]))
        self.assertEqual(first["x_draw"][:2], ("I32", [8, 5]))

    def keys_of_sides(self):
        sides = []
        for side in ("train", "val"):
            lines = self.batches("--steps", "0:9", "--split", side)
            sides.append({key for line in lines for key in line["keys"]})
        return sides

    def test_a_key_is_the_path_and_its_side_stays(self):
        split = {"train": 0.6, "val": 0.4}
        for cache in ("none", "ram"):
            with self.subTest(cache=cache):
                more = self.photos / "class0" / "0000.jpg"
                more.unlink(missing_ok=True)
                self.images(split=split, loader={"cache": cache,
                                                 "tail": "exact"})
                train, val = self.keys_of_sides()
                self.assertEqual(sorted(train | val), self.names())
                self.assertTrue(train and val)
                shutil.copy(PICTURES[0], more)  # before all others
                later_train, later_val = self.keys_of_sides()
                self.assertEqual((later_train | later_val) - train - val,
                                 {"class0/0000.jpg"})
                self.assertLessEqual(train, later_train)
                self.assertLessEqual(val, later_val)

    def test_dtypes_and_layouts(self):
        for dtype, word in (("float32", "F32"), ("bfloat16", "BF16"),
                            ("float16", "F16"), ("uint8", "U8")):
            self.images(fields={"x": {"image": {
                "size": 8, "resize": 9, "dtype": dtype, "layout": "nhwc",
                "mode": "L"}}})
            self.assertEqual(self.tensors()[2]["x"][:2], (word, [8, 8, 8, 1]))

    def test_a_labels_file_names_the_pictures(self):
        flat = self.folder / "flat"
        flat.mkdir()
        rows = []
        for name in self.names():
            short = name.replace("/", "_")
            shutil.copy(self.photos / name, flat / short)
            rows.append((short, name.split("/")[0]))
        (self.folder / "labels.csv").write_text(
            "path,class\n" + "".join(f'"{p}",{c}\r\n' for p, c in rows))
        (self.folder / "labels.jsonl").write_text("".join(
            json.dumps({"file_name": p, "label": c}) + "\n" for p, c in rows))
        self.images()
        expected = self.tensors()[0]
        for labels in ("labels.csv", "labels.jsonl"):
            self.images({"path": "flat", "labels": labels})
            self.assertEqual(self.tensors()[0], expected)
        (self.folder / "labels.csv").write_text("path,class\nnone.jpg,cat\n")
        self.images({"path": "flat", "labels": "labels.csv"})
        self.refuse_batch("source", "images.labels", "line 2", "none.jpg")
        (self.folder / "labels.csv").write_text("where,class\nnone.jpg,cat\n")
        self.refuse_batch("source", "images.labels", "line 1", "path")
        (self.folder / "labels.jsonl").write_text("{\n")
        self.images({"path": "flat", "labels": "labels.jsonl"})
        self.refuse_batch("source", "images.labels", "line 1")

    def test_tar_files_are_read_in_place(self):
        with tarfile.open(self.folder / "all.tar", "w") as tar:
            for name in reversed(self.names()):
                tar.add(self.photos / name, arcname="./" + name)
        self.images()
        expected = self.tensors()[0]
        self.images({"path": "all.tar"})
        self.assertEqual(self.tensors()[0], expected)
        whole = (self.folder / "all.tar").read_bytes()
        (self.folder / "all.tar").write_bytes(whole[:len(whole) // 2])
        self.refuse_batch("source", "images.tar", "all.tar", "cut off")
        (self.folder / "all.tar").write_bytes(b"x" * 2048)
        self.refuse_batch("source", "images.tar", "damaged header")

    def test_shards_as_webdataset_writes_them(self):
        for shard in range(2):
            with tarfile.open(self.folder / f"s-{shard}.tar", "w",
                              format=tarfile.PAX_FORMAT) as tar:
                for i, path in enumerate(PICTURES[shard::2]):
                    long = "very" * 40 + f"/{i:06}"
                    for name, data in (
                            (f"{long}{path.suffix}", path.read_bytes()),
                            (f"{long}.cls", str(i % 4).encode())):
                        info = tarfile.TarInfo(name)
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
        self.images({"path": "s-*.tar"})
        digests, keys, first = self.tensors()
        self.assertEqual(len(digests), 5)
        self.assertEqual(
            set(struct.unpack(f"<{len(keys)}q", first["y"][2])) - set(range(4)),
            set())

    def test_a_column_of_a_database_holds_them_too(self):
        base = sqlite3.connect(self.folder / "d.sqlite")
        base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, photo BLOB, "
                     "class TEXT)")
        for i, name in enumerate(self.names()):
            base.execute("INSERT INTO t VALUES (?, ?, ?)",
                         (i, (self.photos / name).read_bytes(),
                          name.split("/")[0]))
        base.commit()
        base.close()
        self.images()
        expected = self.tensors()[2]["x"]
        fields = json.loads(json.dumps(FIELDS))
        fields["x"]["image"]["column"] = "photo"
        self.write_job(self.job(fields=fields,
                                loader={"batch_size": 8, "seed": 3}))
        self.assertEqual(self.tensors()[2]["x"], expected)

    def test_a_check_of_a_table_decodes_its_pictures(self):
        good = (DATA / "rgb.png").read_bytes()
        damaged = bytearray(good)
        damaged[damaged.find(b"IDAT") + 20] ^= 0x55
        with contextlib.closing(
                sqlite3.connect(self.folder / "d.sqlite")) as base, base:
            base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, photo BLOB, "
                         "other BLOB)")
            base.executemany("INSERT INTO t VALUES (?, ?, x'00')", [
                (i, None if i < 20 else bytes(damaged) if i == 50 else good)
                for i in range(60)])
        for workers in (1, 8):
            found = self.run_it("check", "sqlite:d.sqlite#t", "--workers",
                                workers, "--json").json()
            self.assertEqual((found["rows"], found["bad_rows"]), (60, 1))
            self.assertEqual((found["bad"][0]["row"], found["bad"][0]["column"]),
                             ("50", "photo"))
            self.assertIn("damaged PNG", found["bad"][0]["why"])

    def table_of_paths(self, names, labels):
        (self.folder / "rows.csv").write_text("file,class,labels\n" + "".join(
            f"{name},{name.split('/')[0]},{of}\n"
            for name, of in zip(names, labels)))
        fields = json.loads(json.dumps(FIELDS))
        fields["x"]["image"].update(column="file", folder="photos")
        fields["z"] = {"multi_hot": {"column": "labels", "size": 4,
                                     "separator": "|"}}
        self.write_job(self.job(
            source={"kind": "csv", "path": "rows.csv"}, fields=fields,
            loader={"batch_size": 8, "seed": 3}))

    def test_a_table_may_hold_paths_and_several_columns_of_labels(self):
        self.images()
        _, keys, expected = self.tensors()
        names = self.names()
        labels = ["|".join(["abc"[i % 3], "d"][:1 + i % 2])
                  for i in range(len(names))]
        self.table_of_paths(names, labels)
        _, same_keys, first = self.tensors()
        self.assertEqual([names[key] for key in same_keys], keys)
        for name in ("x", "x_draw", "y"):
            self.assertEqual(first[name], expected[name], name)
        self.assertEqual(first["z"][:2], ("F32", [8, 4]))
        self.assertEqual(
            struct.unpack("<32f", first["z"][2]),
            tuple(float(label in labels[key].split("|"))
                  for key in same_keys for label in "abcd"))
        self.table_of_paths([*names, "class0/none.jpg"], [*labels, "a"])
        answer = self.run_it("batch", "job.json", "--json")
        self.assertNotEqual(answer.code, 0)
        self.assertIn("class0/none.jpg", answer.out)

    def test_the_plan_says_what_pictures_would_take_before_they_are_read(self):
        self.images()
        plan = self.succeed("train", "job.json", "--plan", "--json").json()
        files = sum(p.stat().st_size for p in self.photos.rglob("*.*"))
        lines = {line["tier"]: line for line in plan["plan"]["tiers"]}
        self.assertEqual(plan["plan"]["tier"], "none")
        self.assertEqual(plan["preparation"],
                         {"form": "by_position",
                          "reason": "nothing requires a scan"})
        self.assertEqual(plan["plan"]["predicted_from"], len(self.names()))
        # All of so few are looked at; "y" takes 8 bytes.
        self.assertEqual(lines["ram"]["rows_bytes"],
                         files + 8 * len(self.names()))
        self.assertGreater(lines["ram"]["most_rows"], len(self.names()))
        threads, larger = plan["plan"]["notes"]
        self.assertIn("threads that finish rows", threads)
        self.assertGreater(lines["ram"]["host_bytes"],
                           lines["ram"]["rows_bytes"])
        for said in ("field 'x'", '"store": {"form": "decoded"} keeps',
                     "fits in memory", "ms of processor time"):
            self.assertIn(said, larger)
        fields = json.loads(json.dumps(FIELDS))
        fields["x"]["image"]["store"] = {"form": "decoded"}
        self.images(fields=fields)
        plan = self.succeed("train", "job.json", "--plan", "--json").json()
        lines = {line["tier"]: line for line in plan["plan"]["tiers"]}
        decoded = lines["ram"]["rows_bytes"]
        self.images(fields=fields, loader={"cache": "ram"})
        plan = self.succeed("train", "job.json", "--plan", "--json").json()
        lines = {line["tier"]: line for line in plan["plan"]["tiers"]}
        self.assertNotIn("predicted_from", plan["plan"])
        self.assertAlmostEqual(lines["ram"]["rows_bytes"], decoded,
                               delta=len(self.names()))

    def test_pictures_are_kept_decoded_where_that_is_said_to_pay(self):
        self.images(train={"epochs": 3})
        plan = self.succeed("train", "job.json", "--plan", "--json"
                            ).json()["plan"]
        self.assertEqual(plan["tier"], "none")
        chosen = {line["tier"]: line for line in plan["tiers"]}["none"]
        for said in ("field 'x' as \"store\": {\"form\": \"decoded\"} has it",
                     "fits in memory", "batches stay the same"):
            self.assertIn(said, plan["notes"][-1])
        self.images(train={"epochs": 3}, loader={"cache": "none"})
        plan = self.succeed("train", "job.json", "--plan", "--json"
                            ).json()["plan"]
        read = {line["tier"]: line for line in plan["tiers"]}["none"]
        self.assertGreater(chosen["host_bytes"], 2 * read["host_bytes"])
        self.assertNotIn("batches stay the same", str(plan["notes"]))
        fields = json.loads(json.dumps(FIELDS))
        fields["x"]["image"]["parity"] = "fast"
        self.images(train={"epochs": 3}, fields=fields)
        plan = self.succeed("train", "job.json", "--plan", "--json"
                            ).json()["plan"]
        self.assertIn("the bytes of batches change", plan["notes"][-1])

    def test_the_plan_counts_what_decodes_pictures_that_are_kept(self):
        taken = []
        for max_pixels in (178956970, 40 * 40):
            fields = json.loads(json.dumps(FIELDS))
            fields["x"]["image"]["max_pixels"] = max_pixels
            self.images({"on_bad": "skip"}, fields=fields,
                        loader={"cache": "ram", "workers": 2})
            plan = self.succeed("train", "job.json", "--plan", "--json"
                                ).json()["plan"]
            line = {line["tier"]: line for line in plan["tiers"]}["ram"]
            self.assertIn("2 threads that finish rows", plan["notes"][-1])
            taken.append(line["host_bytes"] - line["rows_bytes"])
        self.assertGreater(taken[0], taken[1])

    # -- what is wrong

    def refuse_batch(self, kind, code, *names):
        self.refused(self.run_it("batch", "job.json", "--json"), kind, code,
                     *names)

    def test_folders_that_are_no_classes(self):
        self.images({"path": "nowhere"})
        self.refuse_batch("source", "files.missing", "nowhere")
        (self.photos / "empty").mkdir()
        self.images()
        self.refuse_batch("source", "images.empty_class", "photos/empty")
        self.images({"path": "photos/class0"})
        self.refuse_batch("source", "images.none", "labels")
        self.images({"where": "class = 'a'"})
        self.refuse_batch("request", "source.where")

    def test_a_bad_picture_is_named_and_dealt_with(self):
        bad = self.photos / "class1" / "bad.jpg"
        good = (DATA / "420_b.jpg").read_bytes()
        damaged_png = bytearray((DATA / "rgb.png").read_bytes())
        damaged_png[damaged_png.find(b"IDAT") + 20] ^= 0x55
        bomb = bytearray(good)
        at = bomb.find(b"\xff\xc0") + 5
        bomb[at:at + 4] = b"\xea\x60\xea\x60"
        for contents, why in ((b"", "is empty"), (b"<html>", "not a picture"),
                              (good[:len(good) // 2], "cut off"),
                              (bytes(damaged_png), "damaged PNG"),
                              (bytes(bomb), "60000 x 60000"),
                              (b"GIF89a", "GIF")):
            with self.subTest(why=why):
                bad.write_bytes(contents)
                self.images(loader={"on_bad": "stop"})
                self.refused(self.run_it("batch", "job.json", "--json",
                                         "--steps", "0:6"),
                             "transform", "data.bad_sample",
                             "class1/bad.jpg", why)
                for on_bad in ("substitute", "mask"):
                    digests = set()
                    for workers in (0, 1, 2, 8):
                        self.images(loader={"on_bad": on_bad,
                                            "workers": workers})
                        digests.add(tuple(self.tensors()[0]))
                    self.assertEqual(len(digests), 1)

    def test_a_bad_picture_is_named_where_rows_are_kept(self):
        bad = self.photos / "class1" / "bad.jpg"
        self.images(loader={"cache": "ram"})
        bad.write_bytes(b"<html>")
        self.refuse_batch("transform", "data.bad_rows",
                          "row 'class1/bad.jpg'", "not a picture")
        self.images({"on_bad": "skip"})
        run = self.succeed("train", "job.json", "--json").json()["run"]
        [line] = (self.folder / run / "quarantine.jsonl"
                  ).read_text().splitlines()
        self.assertEqual(json.loads(line)["key"], "class1/bad.jpg")
        self.images(loader={"cache": "ram"})
        damaged = bytearray((DATA / "rgb.png").read_bytes())
        damaged[damaged.find(b"IDAT") + 20] ^= 0x55
        bad.write_bytes(damaged)  # which decoding shows
        self.refused(self.run_it("batch", "job.json", "--json", "--steps",
                                 "0:6"), "transform", "data.bad_sample",
                     "class1/bad.jpg", "damaged PNG")

    def test_a_picture_that_cannot_be_read_is_a_bad_sample(self):
        link = self.photos / "class1" / "gone.jpg"
        link.symlink_to(self.folder / "nowhere.jpg")
        self.images()
        self.refused(self.run_it("batch", "job.json", "--json", "--steps",
                                 "0:6"),
                     "transform", "data.bad_sample", "class1/gone.jpg",
                     "No such file")

    def test_settings_that_cannot_be(self):
        for settings, name in (({"size": "big"}, "size"),
                               ({"dtype": "int8"}, "dtype"),
                               ({"flip": 2}, "flip"),
                               ({"scale": [2, 1]}, "scale"),
                               ({"finish": "device"}, "finish"),
                               ({"decode": "device", "mode": "L"}, "decode"),
                               ({"mean": [0, 0, 0], "std": [1, 1, 1]}, "mean")):
            with self.subTest(settings=settings):
                self.images(fields={"x": {"image": settings}})
                self.refuse_batch("request", "settings.value", name)
        self.images(fields={"x": {"image": {"column": "class"}}})
        self.images(fields={"x": {"columns": ["image"]}})
        self.refuse_batch("request", "source.column_type", "image")


if __name__ == "__main__":
    unittest.main()
