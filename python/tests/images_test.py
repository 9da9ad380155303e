"""Folders of pictures in Python, and that they are what Pillow makes of them."""

import importlib.util
import os
import pathlib
import shutil
import struct
import tempfile
import types
import unittest
import zlib

import numpy

import penstock
from penstock import images
from small_pictures import draw_kinds

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data/images"
PICTURES = sorted(p for p in DATA.iterdir()
                  if p.suffix in (".jpg", ".png", ".webp"))


def has_decoder():
    try:
        with tempfile.TemporaryDirectory() as folder:
            fill(pathlib.Path(folder))
            with penstock.ImageFolder(folder, image={"size": 8}) as loader:
                loader.peek()
        return True
    except penstock.Error as error:
        return error.code != "image.part_missing"


def fill(folder):
    for at, path in enumerate(PICTURES):
        of_class = folder / ("cat", "dog", "bird")[at % 3]
        of_class.mkdir(exist_ok=True)
        shutil.copy(path, of_class / path.name)


def transform(name, **members):
    """What looks like a transform of torchvision."""
    return type(name, (), members)()


def compose(*parts):
    return types.SimpleNamespace(transforms=parts)


CROP = transform("RandomResizedCrop", size=(9, 8), scale=(0.2, 1),
                 ratio=(0.75, 4 / 3), interpolation=types.SimpleNamespace(
                     value="bicubic"))
FLIP = transform("RandomHorizontalFlip", p=0.25)
SHORT = transform("Resize", size=[20], max_size=None)
MIDDLE = transform("CenterCrop", size=17)
NORMAL = transform("Normalize", mean=[0.5] * 3, std=(0.25,) * 3)
DRAWN = {"train": "random_resized_crop", "flip": 0.5}


@unittest.skipUnless(has_decoder(), "built without what decodes pictures")
class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        fill(self.root)
        self.names = sorted(
            str(path.relative_to(self.root))
            for path in self.root.rglob("*") if path.is_file())

    def test_a_format_unpacks_pictures_and_labels(self):
        with penstock.ImageFolder(self.root, batch_size=8, image={"size": 8},
                                  format="numpy") as loader:
            pictures, labels = loader.peek()
            self.assertEqual(pictures.shape, (8, 3, 8, 8))
            self.assertEqual((type(labels), labels.dtype),
                             (numpy.ndarray, numpy.int64))

    def test_labels_are_numbers_of_the_sorted_names(self):
        with penstock.ImageFolder(self.root, batch_size=8,
                                  image={"size": 8}) as loader:
            self.assertEqual(loader.classes, ["bird", "cat", "dog"])
            self.assertEqual(loader.class_to_idx["dog"], 2)
            seen = 0
            for batch in loader:
                arrays = batch.numpy()
                self.assertEqual(arrays["image"].shape[1:], (3, 8, 8))
                for key, label in zip(batch.ids.tolist(), arrays["label"]):
                    self.assertTrue(self.names[key].startswith(
                        loader.classes[label]))
                seen += len(batch.ids)
            self.assertEqual(seen, len(PICTURES))

    def test_nothing_is_drawn_by_default(self):
        with penstock.ImageFolder(self.root, batch_size=4) as loader:
            self.assertEqual(loader.peek()["image"].shape, (4, 3, 224, 224))
            first, second = ([batch.numpy()["image"].tobytes()
                              for batch in loader] for _ in range(2))
            self.assertEqual(first, second)

    def test_names_that_are_not_utf8_are_as_os_fsdecode_has_them(self):
        name = os.fsdecode(b"\xff\xfe.png")
        try:
            (self.root / "cat" / name).write_bytes(images.png_of(
                numpy.zeros((8, 8, 3), "uint8")))
        except OSError:
            self.skipTest("this file system takes no such names")
        path = os.path.join("cat", name)
        with penstock.ImageFolder(self.root, batch_size=99,
                                  image={"size": 8}) as loader:
            sample = (str(self.root / path), loader.class_to_idx["cat"])
            self.assertIn(sample, loader.samples)
            self.assertIn(path, loader.peek().row_keys)
        folder = os.fsdecode(b"\xff\xfe")
        shutil.copytree(self.root / "dog", self.root / folder)
        with penstock.ImageFolder(self.root, image={"size": 8}) as loader:
            self.assertEqual(loader.classes, ["bird", "cat", "dog", folder])
            self.assertIn(3, loader.targets)
            self.assertNotIn(-1, loader.targets)
        shutil.rmtree(self.root / folder)
        (self.root / path).write_bytes(b"damaged")
        with penstock.ImageFolder(self.root, batch_size=99, image={"size": 8},
                                  cache="none") as loader:
            with self.assertRaises(penstock.Error) as raised:
                loader.peek()
            self.assertIn(r"\xff\xfe.png", str(raised.exception))
        with penstock.ImageFolder(self.root, batch_size=99, image={"size": 8},
                                  cache="none", on_bad="mask") as loader:
            [bad] = loader.peek().rejected
            self.assertEqual(bad["key"], path)

    def test_classes_of_a_file_of_labels(self):
        labels = self.root / "labels.csv"
        labels.write_text("path,class\n" + "".join(
            f"{name},{'xy'[at % 2]}\n" for at, name in enumerate(self.names)))
        for cache in ("none", "ram"):
            with penstock.ImageFolder(self.root, labels=labels, cache=cache,
                                      image={"size": 8}) as loader:
                self.assertEqual(loader.peek()["label"].shape, (1,))
                self.assertEqual(loader.classes, ["x", "y"])

    def test_transforms_of_torchvision_become_settings(self):
        self.assertEqual(
            images.image_settings(compose(CROP, FLIP, transform("ToTensor"),
                                          NORMAL)),
            {"train": "random_resized_crop", "val": "random_resized_crop",
             "size": [9, 8], "scale": [0.2, 1], "ratio": [0.75, 4 / 3],
             "interpolation": "bicubic", "flip": 0.25, "dtype": "float32",
             "mean": [0.5] * 3, "std": [0.25] * 3})
        made = images.image_settings(compose(
            transform("Resize", size=[20], max_size=None),
            transform("CenterCrop", size=16), transform("ToImage"),
            transform("ToDtype", dtype="torch.bfloat16", scale=True)))
        self.assertEqual((made["train"], made["resize"], made["size"],
                          made["dtype"]), ("resize_center", 20, [16, 16],
                                           "bfloat16"))
        with penstock.ImageFolder(self.root, compose(CROP, FLIP),
                                  batch_size=4) as loader:
            self.assertEqual(loader.peek().numpy()["image"].shape,
                             (4, 3, 9, 8))

    def test_a_compose_may_stand_in_another_one(self):
        inner = compose(transform("Resize", size=[20], max_size=None,
                                  interpolation="nearest-exact"),
                        transform("CenterCrop", size=16))
        made = images.image_settings(compose(
            transform("RGB"), inner, transform("ToPureTensor")))
        self.assertEqual((made["train"], made["size"], made["interpolation"]),
                         ("resize_center", [16, 16], "nearest"))

    def test_one_number_is_that_of_all_channels(self):
        of_all = transform("Normalize", mean=0.5, std=[0.25])
        for first, channels in ((), 3), ((transform("Grayscale"),), 1):
            made = images.image_settings(compose(
                *first, CROP, transform("ToTensor"), of_all))
            self.assertEqual((made["mean"], made["std"]),
                             ([0.5] * channels, [0.25] * channels))

    def test_a_float_may_become_another_one_behind_normalize(self):
        for scale in (True, False):
            made = images.image_settings(compose(
                CROP, transform("ToTensor"), NORMAL,
                transform("ToDtype", dtype="torch.bfloat16", scale=scale)))
            self.assertEqual((made["dtype"], made["mean"]),
                             ("bfloat16", [0.5] * 3))

    def test_a_fill_is_cut_to_whole_numbers_as_torchvision_does(self):
        for fill, made in ((0.7, 0), (99.7, 99), ([9.5, 3, 4], [9, 3, 4]),
                           (None, 0), (numpy.array(7.0), 7)):
            entry = images.image_settings(compose(CROP, transform(
                "RandomRotation", degrees=[-5, 5], fill=fill)))["augment"][0]
            self.assertEqual(entry["rotation"]["fill"], made)

    def test_batches_are_mixed_by_operations(self):
        mixes = [{"cutmix": ["image"], "labels": ["label"]}]
        with penstock.ImageFolder(self.root, batch_size=4, operations=mixes,
                                  image={"size": 8}) as loader:
            self.assertEqual(sorted(loader.peek().keys()),
                             ["cutmix_lambda", "image", "label", "label_mixed"])

    def test_samples_are_those_of_ids(self):
        with penstock.ImageFolder(self.root, batch_size=5, shuffle=True,
                                  image={"size": 8}) as loader:
            self.assertEqual([path for path, _ in loader.samples],
                             [str(self.root / name) for name in self.names])
            self.assertEqual(loader.imgs, loader.samples)
            for batch in loader:
                self.assertEqual(
                    [loader.targets[key] for key in batch.ids.tolist()],
                    batch.numpy()["label"].tolist())

    def test_row_keys_are_paths_whatever_bytes_these_have(self):
        odd = os.fsencode(self.root) + b"/cat/\xe9.jpg"
        shutil.copy(PICTURES[0], odd)
        names = [*self.names, os.fsdecode(b"cat/\xe9.jpg")]
        for cache in ("auto", "ram"):
            with penstock.ImageFolder(self.root, batch_size=64, cache=cache,
                                      image={"size": 8}) as loader:
                keys = loader.peek().row_keys
                self.assertEqual(sorted(keys, key=os.fsencode),
                                 sorted(names, key=os.fsencode))

    def test_pictures_are_kept_decoded_from_the_second_epoch_on(self):
        seen = {}
        for cache in ("none", "auto"):
            with penstock.ImageFolder(
                    self.root, batch_size=16, shuffle=True, cache=cache,
                    image={"size": 9, **DRAWN, "record_draws": True}
            ) as loader:
                told = "from the second epoch on" in str(loader.plan)
                self.assertEqual(told, cache == "auto")
                seen[cache] = [
                    {name: array.tobytes()
                     for name, array in batch.numpy().items()}
                    for _ in range(4) for batch in loader]
        self.assertEqual(len(seen["none"]), 4 * 3)
        self.assertEqual(seen["auto"], seen["none"])

    def test_pictures_are_kept_decoded_beside_their_files(self):
        for section, settings in (("loader", {"balance": "class"}),
                                  ("source", {"on_bad": "skip"}),
                                  ("split", {"by": "class", "val": 0.4})):
            seen = {}
            for cache in ("none", "auto"):
                job = {"source": {"kind": "images", "path": str(self.root)},
                       "fields": {"x": {"image": {"size": 9, **DRAWN}}},
                       "loader": {"batch_size": 4, "cache": cache}}
                job.setdefault(section, {}).update(settings)
                with self.subTest(section=section, cache=cache), \
                        penstock.open(job) as loader:
                    told = "batches stay the same" in str(loader.plan)
                    self.assertEqual(told, cache == "auto")
                    seen[cache] = [batch.numpy()["x"].tobytes()
                                   for _ in range(4) for batch in loader]
            self.assertGreater(len(seen["none"]), 4)
            self.assertEqual(seen["auto"], seen["none"])

    def test_labels_that_are_numbers_are_classes_in_their_order(self):
        labels = self.root / "labels.csv"
        labels.write_text("path,class\n" + "".join(
            f"{name},{at}\n" for at, name in enumerate(self.names)))
        with penstock.ImageFolder(self.root, labels=labels,
                                  image={"size": 8}) as loader:
            self.assertEqual(loader.classes,
                             [str(at) for at in range(len(self.names))])
            self.assertEqual(loader.targets, list(range(len(self.names))))
        job = {"source": {"kind": "images", "path": str(self.root),
                          "labels": str(labels)},
               "fields": {"y": {"column": "class", "dtype": "int64"}},
               "loader": {"batch_size": len(self.names), "shuffle": False}}
        with penstock.open(job) as loader:
            self.assertEqual(loader.peek().numpy()["y"].tolist(),
                             list(range(len(self.names))))

    def test_transforms_that_augment_become_entries(self):
        nearest = types.SimpleNamespace(value="nearest")
        made = images.image_settings(compose(
            CROP, FLIP,
            transform("RandomAffine", degrees=[-5.0, 5.0], translate=(0.1, 0.2),
                      scale=None, shear=None, interpolation=nearest, fill=0,
                      center=None),
            transform("ColorJitter", brightness=(0.6, 1.4), contrast=None,
                      saturation=None, hue=[-0.1, 0.1]),
            transform("TrivialAugmentWide", num_magnitude_bins=31,
                      interpolation=nearest, fill=None),
            transform("ToTensor"),
            transform("RandomErasing", p=1, scale=(0.02, 0.33),
                      ratio=(0.3, 3.3), value=[0.0])))
        moves = {"interpolation": "nearest", "fill": 0}
        self.assertEqual(made["augment"], [
            {"affine": {"degrees": [-5, 5], "translate": [0.1, 0.2], **moves}},
            {"color_jitter": {"brightness": [0.6, 1.4], "hue": [-0.1, 0.1]}},
            {"trivial_augment_wide": {"num_magnitude_bins": 31, **moves}},
            {"random_erasing": {"p": 1, "scale": [0.02, 0.33],
                                "ratio": [0.3, 3.3], "value": [0]}}])
        made["record_draws"] = True
        with penstock.ImageFolder(self.root, image=made, batch_size=4) as loader:
            batch = loader.peek()
            changes = batch.numpy()["image_augment"]
            self.assertEqual(changes.shape, (4, 7, 8))
            self.assertEqual(changes[:, 0, 0].tolist(), [2] * 4)
            self.assertIn("affine", penstock.show(batch)._repr_html_())

    @unittest.skipUnless(importlib.util.find_spec("torchvision"),
                         "torchvision is not installed")
    def test_what_was_drawn_given_to_torchvision_makes_the_same_picture(self):
        from PIL import Image
        from torchvision.transforms.v2 import functional

        plain = {"size": 32, "train": "resize", "flip": 0,
                 "record_draws": True}
        done = {**plain, "augment": [{"rotation": {"degrees": 180}},
                                     {"color_jitter": {"hue": 0.5}}]}
        before, after = (
            penstock.ImageFolder(self.root, image=made, batch_size=len(PICTURES))
            for made in (plain, done))
        with before, after:
            pictures = before.peek().numpy()["image"].transpose(0, 2, 3, 1)
            found = after.peek().numpy()
            for at, picture in enumerate(pictures):
                turn, hue = found["image_augment"][at, :2, 1].tolist()
                image = functional.adjust_hue(functional.rotate(
                    Image.fromarray(picture), turn), hue)
                numpy.testing.assert_array_equal(
                    found["image"][at].transpose(1, 2, 0), numpy.array(image))

    def refuses(self, parts, name):
        with self.assertRaises(penstock.RequestError) as caught:
            images.image_settings(compose(*parts))
        self.assertEqual(caught.exception.code, "images.transform")
        self.assertIn(name, str(caught.exception))

    def test_an_order_that_would_make_other_bytes_is_refused(self):
        for parts, name in (
                ((CROP, transform("ToTensor"), NORMAL, NORMAL),
                 "Normalize: it appears twice"),
                ((CROP, FLIP, FLIP),
                 "RandomHorizontalFlip: it appears twice"),
                ((SHORT, FLIP, MIDDLE),
                 "CenterCrop: RandomHorizontalFlip comes before it"),
                ((FLIP, SHORT, MIDDLE),
                 "CenterCrop: RandomHorizontalFlip comes before it"),
                ((SHORT, transform("RandomRotation", degrees=[-5, 5]), MIDDLE),
                 "CenterCrop: RandomRotation comes before it"),
                ((CROP, transform("RandomRotation", degrees=[-5, 5],
                                  fill={"Image": 3})), "fill is a dict"),
                ((CROP, transform("ToTensor"), NORMAL,
                  transform("ToDtype", dtype="torch.uint8", scale=True)),
                 "the output of Normalize"),
                ((CROP, transform("ToTensor"),
                  transform("ToDtype", dtype="torch.uint8", scale=False)),
                 "to 0 to 255")):
            self.refuses(parts, name)

    def test_other_transforms_are_refused_by_name(self):
        for parts, name in (
                ((CROP, transform("RandomPerspective")), "RandomPerspective"),
                ((transform("CenterCrop", size=8),), "Resize"),
                ((transform("Resize", size=[9], max_size=4),), "max_size"),
                ((CROP, transform("Grayscale")), "in colour"),
                ((transform("Resize", size=[9]), CROP), "Resize comes before"),
                ((transform("Resize", size=[9]),
                  transform("CenterCrop", size=8),
                  transform("Resize", size=[4, 4])), "CenterCrop comes"),
                ((transform("ToImage"), CROP), "a tensor"),
                ((transform("Grayscale", num_output_channels=3), CROP),
                 "channel"),
                ((CROP, transform("ToDtype", dtype="torch.float32",
                                  scale=False)), "scale"),
                ((FLIP,), "size"),
                ((transform("RandomInvert", p=1), CROP), "before the transform"),
                ((CROP, transform("RandomInvert", p=1), FLIP), "RandomInvert"),
                ((CROP, transform("ToTensor"), transform("RandomInvert", p=1)),
                 "a tensor"),
                ((CROP, transform("RandomErasing", p=1)), "no ToTensor"),
                ((CROP, transform("RandomRotation", degrees=[-5, 5],
                                  expand=True)), "expand"),
                ((transform("Resize", size=[9, 9], interpolation="box"),),
                 "interpolation box"),
                ((CROP, transform("RandomRotation", degrees=[-5, 5],
                                  interpolation="lanczos")), "lanczos"),
                ((CROP, transform("ToDtype", dtype="torch.float64",
                                  scale=True)), "found torch.float64"),
                ((CROP, transform("ToDtype", dtype={"Image": "torch.uint8"},
                                  scale=True)), "give it one dtype"),
                ((CROP, transform("ToImage"),
                  transform("Normalize", mean=[0.5] * 3, std=[0.5] * 3)),
                 "are uint8 at this point"),
                ((transform("Grayscale"), transform("RGB"), CROP),
                 "Grayscale comes before"),
                ((CROP, transform("RandomApply", transforms=[FLIP])),
                 "transform, RandomApply"),
                ((CROP, transform("CutMix")),
                 'operations=[{"cutmix": ["image"], "labels": ["label"]}]')):
            self.refuses(parts, name)
        with self.assertRaises(penstock.RequestError) as caught:
            penstock.ImageFolder(self.root, compose(CROP), image={"flip": 0.5})
        self.assertIn("image.flip", str(caught.exception))

    def test_a_section_says_what_a_transform_does_not(self):
        made = compose(CROP, FLIP, transform("ToTensor"), NORMAL)
        with penstock.ImageFolder(self.root, made, batch_size=4, device="cpu",
                                  cache="ram") as loader:
            right = loader.peek().numpy()["image"]
        with penstock.ImageFolder(self.root, made, batch_size=4, device="sim",
                                  cache="ram",
                                  image={"decode": "device"}) as loader:
            self.assertIn("finished on the device", str(loader.plan))
            numpy.testing.assert_array_equal(loader.peek().numpy()["image"],
                                             right)

    def test_a_bad_picture_ends_the_loop_or_is_replaced(self):
        (self.root / "cat" / "bad.jpg").write_bytes(b"no picture")
        with penstock.ImageFolder(self.root, batch_size=8,
                                  image={"size": 8}) as loader:
            with self.assertRaises(penstock.TransformError) as caught:
                for _ in loader:
                    pass
            self.assertIn("cat/bad.jpg", str(caught.exception))
        for on_bad in ("substitute", "mask"):
            with penstock.ImageFolder(self.root, batch_size=8, on_bad=on_bad,
                                      image={"size": 8}) as loader:
                self.assertEqual(sum(len(batch.ids) for batch in loader),
                                 len(PICTURES) + 1)

    def test_a_bad_picture_cannot_be_skipped(self):
        with self.assertRaises(penstock.RequestError) as caught:
            penstock.ImageFolder(self.root, on_bad="skip")
        for word in ('found "skip"', '"substitute"', '"mask"', '"stop"',
                     f"penstock check images:{self.root}"):
            self.assertIn(word, str(caught.exception))

    @unittest.skipUnless(importlib.util.find_spec("torch"),
                         "torch is not installed")
    def test_bfloat16_is_shown_as_float32_is(self):
        seen = []
        for dtype in ("float32", "bfloat16"):
            with penstock.ImageFolder(
                    self.root, batch_size=4, image={
                        "size": 8, "dtype": dtype,
                        "record_draws": True}) as loader:
                sheet = penstock.show(loader.peek(), classes=loader.classes)
            seen.append(sheet)
        self.assertEqual(seen[0]._captions, seen[1]._captions)
        for one, other in zip(seen[0]._pictures, seen[1]._pictures):
            self.assertLessEqual(
                numpy.abs(one.astype(int) - other.astype(int)).max(), 1)

    def test_a_sheet_shows_what_the_model_gets(self):
        settings = {"size": [6, 9], "record_draws": True}
        with penstock.ImageFolder(self.root, batch_size=5,
                                  image=settings) as loader:
            batch = loader.peek()
            sheet = penstock.show(batch, classes=loader.classes, columns=3)
            page, grid = self.root / "s.html", self.root / "s.png"
            sheet.save(page)
            sheet.save(grid)
            self.assertEqual(page.read_text().count("<img"), 5)
            self.assertIn("label " + loader.classes[
                batch.numpy()["label"][0]], page.read_text())
            data = grid.read_bytes()
            self.assertEqual(struct.unpack(">II", data[16:24]), (33, 16))
            at = data.index(b"IDAT")
            (size,) = struct.unpack(">I", data[at - 4:at])
            rows = zlib.decompress(data[at + 4:at + 4 + size])
            self.assertEqual(list(rows[1:4]),
                             batch.numpy()["image"][0, :, 0, 0].tolist())
            with self.assertRaises(penstock.RequestError) as caught:
                penstock.show(batch, "label")
            self.assertEqual(caught.exception.code, "images.show")

    def test_whole_numbers_that_are_no_class_are_shown_as_they_are(self):
        beside = {"label": numpy.int64([1, -1]), "age": numpy.int64([30, 40])}
        self.assertEqual(
            [images._caption(beside, "image", at, ["cat", "dog"])
             for at in range(2)],
            ["label dog, age 30", "label -1, age 40"])

    def test_normalised_pictures_are_shown_in_their_colours(self):
        floats = numpy.float32([[[0, 1]], [[0.5, 0]], [[1, 0.25]]])
        shown = images.bytes_of((floats - 0.5) / 0.25, [0.5] * 3, [0.25] * 3)
        self.assertEqual(shown.tolist(), [[[0, 128, 255], [255, 0, 64]]])
        self.assertEqual(images.bytes_of(floats[:1] * 4 - 2, None, None)
                         [0, :, 0].tolist(), [0, 255])

    @unittest.skipUnless(importlib.util.find_spec("PIL"),
                         "Pillow is not installed: nothing to compare with")
    def test_pictures_of_all_small_sizes_and_kinds_are_pillows(self):
        from PIL import Image

        root = self.root / "kinds"
        (root / "all").mkdir(parents=True)
        draw_kinds(root / "all")
        settings = {"size": [41, 40], "train": "resize", "flip": 0}
        with penstock.ImageFolder(root, batch_size=32,
                                  image=settings) as loader:
            for batch in loader:
                for key, found in zip(batch.ids.tolist(),
                                      batch.numpy()["image"]):
                    path = loader.samples[key][0]
                    expected = Image.open(path).convert("RGB").resize(
                        (40, 41), Image.Resampling.BILINEAR)
                    numpy.testing.assert_array_equal(
                        found.transpose(1, 2, 0), numpy.asarray(expected), path)

    @unittest.skipUnless(importlib.util.find_spec("PIL"),
                         "Pillow is not installed: nothing to compare with")
    def test_every_batch_is_what_pillow_makes(self):
        import PIL
        from PIL import Image, ImageOps

        if int(PIL.__version__.split(".")[0]) < 13:
            self.skipTest(f"Pillow {PIL.__version__} resizes some pictures in "
                          "another order than version 13")
        filters = {"bilinear": Image.Resampling.BILINEAR,
                   "bicubic": Image.Resampling.BICUBIC,
                   "lanczos": Image.Resampling.LANCZOS,
                   "nearest": Image.Resampling.NEAREST}
        mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
        for name, kind in filters.items():
            settings = {"size": [17, 23], "interpolation": name, "mean": mean,
                        "std": std, "dtype": "float32", **DRAWN,
                        "record_draws": True}
            with penstock.ImageFolder(self.root, batch_size=16, shuffle=True,
                                      image=settings) as loader:
                for batch in loader:
                    arrays = batch.numpy()
                    for at, key in enumerate(batch.ids.tolist()):
                        path = self.root / self.names[key]
                        picture = ImageOps.exif_transpose(Image.open(path))
                        top, left, h, w, flipped = arrays["image_draw"][at]
                        part = picture.convert("RGB").crop(
                            (left, top, left + w, top + h)).resize(
                                (23, 17), kind)
                        if flipped:
                            part = ImageOps.mirror(part)
                        numbers = numpy.asarray(part).astype("float32")
                        expected = ((numbers / numpy.float32(255)
                                     - numpy.float32(mean))
                                    / numpy.float32(std)).transpose(2, 0, 1)
                        numpy.testing.assert_array_equal(
                            arrays["image"][at], expected, str(path) + name)


if __name__ == "__main__":
    unittest.main()
