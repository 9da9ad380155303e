"""Folders of pictures: loaders over them, and what they hand out, to look at."""

from __future__ import annotations

import base64
import functools
import html
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from . import _engine
from ._loader.base import BaseLoader
from ._loader.ranks import Agree, Ranks
from .augment import changes_text
from .errors import refused
from .image_transforms import image_settings
from .job_sections import dumped
from .printing import printable

if TYPE_CHECKING:
    import numpy

    from .job_sections import Settings


class ImageFolder(BaseLoader):
    """Batches of a folder that has a folder of pictures for each class, as
    torchvision's `ImageFolder` reads it: `batch["image"]`, and `batch["label"]`,
    int64, the number of the class among the sorted names.

    `transform` is a `Compose` of torchvision, whose parts are done by threads of
    ours, with the same bytes for the same draws: RandomResizedCrop, Resize,
    CenterCrop, RandomHorizontalFlip, Grayscale, ToTensor, PILToTensor, ToImage,
    ToDtype, ConvertImageDtype, Normalize; and, which are done on the train side
    alone, RandomRotation, RandomAffine, ColorJitter, RandAugment,
    TrivialAugmentWide, GaussianBlur, RandomErasing, RandomVerticalFlip,
    RandomGrayscale, RandomInvert, RandomPosterize, RandomSolarize,
    RandomAdjustSharpness, RandomAutocontrast, RandomEqualize. RGB, ToPureTensor
    and a Compose within it mean what they say. Others are refused by name; MixUp
    and CutMix are `operations`, a job's `loader.operations`:
    `[{"mixup": ["image"], "labels": ["label"]}]`. `image` is a job's section `image`, instead, or with what a transform
    never decides: `{"decode": "device"}`, `{"store": {"form": "decoded"}, "finish":
    "device"}`. Without both a picture is resized to 256 pixels on its short side,
    and its middle is taken: uint8 `[n, 3, 224, 224]`. Nothing is drawn at random
    unless `transform` or `image` asks for it.

    `root` may also be a `.tar` file or a pattern of such; `labels` names a file of
    CSV, TSV or JSON lines that says the class of each picture. `on_bad` is what
    becomes of a picture that cannot be decoded: "stop", an error; "substitute",
    another one in its place; or "mask", zeros, and 0 in a tensor `weight`. The
    other arguments are those of `Loader`.

        loader = penstock.ImageFolder("train", batch_size=64, shuffle=True,
                                      format="torch")
        for images, labels in loader:
            ...
    """

    def __init__(self, root: str | os.PathLike[str], transform: object = None,
                 batch_size: int = 1, shuffle: bool = False, *,
                 image: Settings | None = None,
                 labels: str | os.PathLike[str] | None = None,
                 num_workers: int | None = None,
                 prefetch_factor: int | None = None,
                 drop_last: bool = False, seed: int = 0,
                 split: float | Settings | None = None, side: str = "train",
                 on_bad: str = "stop",
                 operations: Sequence[Settings] = (),
                 device: str | Settings = "auto",
                 cache: str | Settings = "auto",
                 rank: int | None = None, world: int | None = None,
                 agree: Agree | None = None,
                 format: str | None = None) -> None:
        if on_bad == "skip":
            raise refused("settings.value", "cannot use the settings", "on_bad",
                          'found "skip", but bad pictures are found only when '
                          "they are decoded",
                          'choose one of: "substitute", another picture in its '
                          'place, "mask", a picture of zeros whose "weight" is 0, '
                          '"stop"; or remove those that `penstock check images:'
                          f"{os.fspath(root)}` names")
        made = image_settings(transform) if transform is not None else {}
        for key, value in (image or {}).items():
            if key in made:
                raise refused("images.transform", "cannot make the pictures",
                              f"image.{key}",
                              "the transform decides that", "leave one of the "
                                  "two out")
            made[key] = value
        ranks = Ranks(rank, world, agree)
        self.root = os.fspath(root)
        source: dict[str, Any] = {"kind": "images", "path": self.root}
        if labels is not None:
            source["labels"] = os.fspath(labels)
        self._source = source
        ahead = 2 if prefetch_factor is None else prefetch_factor
        loading: dict[str, Any] = {
            "batch_size": batch_size * ranks.world, "seed": seed,
            "shuffle": shuffle, "cache": cache, "on_bad": on_bad,
            "prefetch": ahead * max(1, num_workers or 1),
            "tail": "drop" if drop_last else "exact"}
        if operations:
            loading["operations"] = list(operations)
        if num_workers is not None:
            loading["workers"] = num_workers
        job: dict[str, Any] = {
            "source": source, "loader": loading, "device": device,
            "fields": {"image": {"image": made},
                       "label": {"category": {"column": "class",
                                              "unknown": "error"}}}}
        if split is not None:
            job["split"] = split
        with ranks.opening():
            super().__init__(job, (), side, ranks, format=format)

    @property
    def classes(self) -> ClassNames:
        """The names of the classes, by their numbers."""
        return ClassNames(super().classes, super().classes("label"))

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.classes)}

    @functools.cached_property
    def samples(self) -> list[tuple[str, int]]:
        """The path and the class of each picture, by the numbers in `batch.ids`;
        of those in tar files the name of the member."""
        numbers = self.class_to_idx
        paths, classes = _engine.source_texts(dumped(self._source),
                                              ["path", "class"])
        inside = os.path.isdir(self.root)
        return [(os.path.join(self.root, path or "") if inside else path or "",
                 numbers.get(name or "", -1))
                for path, name in zip(paths, classes)]

    @property
    def imgs(self) -> list[tuple[str, int]]:
        return self.samples

    @property
    def targets(self) -> list[int]:
        return [number for _, number in self.samples]


class ClassNames(list[str]):
    """A list, as torchvision's `ImageFolder.classes` is one. It can be called
    as `Loader.classes` is: `folder.classes("label")`."""

    def __init__(self, of_field: Callable[[str], list[Any]],
                 names: Iterable[str]) -> None:
        super().__init__(names)
        self._of_field = of_field

    def __call__(self, field: str) -> list[Any]:
        return self._of_field(field)


class Sheet:
    """Pictures of a batch beside one another: a notebook shows it, and `save()`
    writes it as .html, with what is known of each, or as .png."""

    def __init__(self, pictures: Sequence[numpy.ndarray[Any, Any]],
                 captions: Sequence[str], columns: int) -> None:
        self._pictures, self._captions = list(pictures), list(captions)
        self._columns = max(1, columns)

    def _repr_html_(self) -> str:
        shown = "".join(
            "<figure style='display:inline-block;margin:4px'><img src="
            f"'data:image/png;base64,{base64.b64encode(png_of(picture)).decode()}'"
            f"><figcaption>{html.escape(printable(caption))}</figcaption></figure>"
            for picture, caption in zip(self._pictures, self._captions))
        return f"<div style='font:11px sans-serif'>{shown}</div>"

    def _repr_png_(self) -> bytes:
        import numpy

        high = max(picture.shape[0] for picture in self._pictures)
        wide = max(picture.shape[1] for picture in self._pictures)
        rows = -(-len(self._pictures) // self._columns)
        gap = 2
        sheet = numpy.full((rows * (high + gap), self._columns * (wide + gap),
                            3), 255, "uint8")
        for at, picture in enumerate(self._pictures):
            top = at // self._columns * (high + gap)
            left = at % self._columns * (wide + gap)
            sheet[top:top + picture.shape[0],
                  left:left + picture.shape[1]] = picture
        return png_of(sheet)

    def save(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if name.endswith(".png"):
            contents = self._repr_png_()
        else:
            contents = self._repr_html_().encode()
        with open(name, "wb") as file:
            file.write(contents)


def show(batch: _engine.Batch, field: str | None = None, *,
         mean: Sequence[float] | None = None,
         std: Sequence[float] | None = None,
         classes: Sequence[Any] | None = None, most: int = 64,
         columns: int = 8) -> Sheet:
    """The pictures of a batch as the model gets them, with their labels and what
    was drawn (`record_draws`). `field` names them (default: the first tensor that
    may be pictures). What was normalised needs `mean` and `std` to be seen in its
    colours; without them it is stretched from its least to its greatest number.

        penstock.show(loader.peek()).save("sheet.html")
    """
    arrays = _arrays_of(batch)
    name = field or next((name for name, array in arrays.items()
                          if _channels_of(array.shape) != 0), None)
    if name is None or name not in arrays or _channels_of(
            arrays[name].shape) == 0:
        raise refused("images.show", "cannot show pictures",
                      f"field {name!r}", "the batch has "
                      + ", ".join(f"{of} {list(array.shape)}"
                                  for of, array in arrays.items()),
                      "name a field of pictures, [n, 3, height, width]")
    pictures = [bytes_of(one, mean, std) for one in arrays[name][:most]]
    captions = [_caption(arrays, name, at, classes)
                for at in range(len(pictures))]
    return Sheet(pictures, captions, columns)


def _arrays_of(batch: _engine.Batch) -> Mapping[str, Any]:
    """In host memory, bfloat16 as float32, since numpy has none."""
    if all(batch[name].dtype != "bfloat16" for name in batch.keys()):
        return batch.host()
    try:
        tensors = batch.torch()
    except ImportError as error:
        raise refused("images.show", "cannot show pictures", "the batch",
                      "the batch has bfloat16, which numpy does not support, "
                      "and torch is not installed", "install torch, or give "
                      "the field the dtype uint8 to view it") from error
    return {name: (tensor.float() if str(tensor.dtype) == "torch.bfloat16"
                   else tensor).cpu().numpy()
            for name, tensor in tensors.items()}


def _channels_of(shape: Iterable[int]) -> int:
    sizes = list(shape)
    if len(sizes) != 4:
        return 0
    return next((at for at in (1, 3) if sizes[at] in (1, 3)), 0)


def _caption(arrays: Mapping[str, Any], name: str, at: int,
             classes: Sequence[Any] | None) -> str:
    told = []
    for other, array in arrays.items():
        if other != name and array.ndim == 1:
            value = array[at].item()
            known = (classes is not None and isinstance(value, int)
                     and 0 <= value < len(classes))
            name = classes[value] if known and classes else value
            told.append(f"{other} {'unknown' if name is None else name}")
        elif other == name + "_draw":
            told.append(" ".join(str(number) for number in array[at].tolist()))
        elif other == name + "_augment":
            told.append(changes_text(array[at]))
    return ", ".join(one for one in told if one)


def bytes_of(picture: Any, mean: Sequence[float] | None,
             std: Sequence[float] | None) -> numpy.ndarray[Any, Any]:
    """A picture of a batch as uint8 `[height, width, 3]`."""
    import numpy

    found = numpy.asarray(picture)
    if found.shape[0] in (1, 3) and found.shape[2] not in (1, 3):
        found = found.transpose(1, 2, 0)
    if found.dtype != numpy.uint8:
        numbers = found.astype("float32")
        if mean is not None and std is not None:
            numbers = (numbers * numpy.array(std, "float32")
                       + numpy.array(mean, "float32"))
        elif numbers.min() < 0 or numbers.max() > 1:
            span = max(float(numbers.max() - numbers.min()), 1e-6)
            numbers = (numbers - numbers.min()) / span
        found = (numbers.clip(0, 1) * 255).round().astype("uint8")
    return numpy.repeat(found, 3, 2) if found.shape[2] == 1 else found


def png_of(picture: numpy.ndarray[Any, Any]) -> bytes:
    """A file of PNG, of uint8 `[height, width, 3]`."""
    height, width, _ = picture.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    rows = b"".join(b"\0" + row.tobytes() for row in picture)
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0,
                                         0))
            + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b""))
