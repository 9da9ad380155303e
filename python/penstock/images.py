"""Folders of pictures: loaders over them, and what they hand out, to look at."""

from __future__ import annotations

import base64
import html
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from .augment import AUGMENTS, augment_entry, changes_text
from .errors import refused
from .loader import BaseLoader
from .ranks import Agree, Ranks

if TYPE_CHECKING:
    import numpy

    from . import _engine
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
    RandomAdjustSharpness, RandomAutocontrast, RandomEqualize. Others are refused
    by name. `image` is a job's section `image`, instead, or with what a transform
    never decides: `{"decode": "device"}`, `{"store": {"form": "decoded"}, "finish":
    "device"}`. Without both pictures are cropped at random to 224 pixels and
    mirrored, uint8 `[n, 3, 224, 224]`.

    `root` may also be a `.tar` file or a pattern of such; `labels` names a file of
    CSV or JSON lines that says the class of each picture. `on_bad` is "stop",
    "substitute" or "mask": what becomes of a picture that cannot be decoded. The
    other arguments are those of `Loader`.

        loader = penstock.ImageFolder("train", batch_size=64, shuffle=True)
        for batch in loader:
            images, labels = batch.torch().values()
    """

    def __init__(self, root: str | os.PathLike[str], transform: object = None,
                 batch_size: int = 1, shuffle: bool = False, *,
                 image: Settings | None = None,
                 labels: str | os.PathLike[str] | None = None,
                 num_workers: int | None = None,
                 prefetch_factor: int | None = None,
                 drop_last: bool = False, seed: int = 0,
                 split: Settings | None = None, side: str = "train",
                 on_bad: str = "stop", device: str | Settings = "auto",
                 cache: str | Settings = "auto",
                 rank: int | None = None, world: int | None = None,
                 agree: Agree | None = None) -> None:
        made = image_settings(transform) if transform is not None else {}
        for key, value in (image or {}).items():
            if key in made:
                raise refused("images.transform", "cannot make the pictures",
                              f"image.{key}",
                              "the transform decides that", "leave one out")
            made[key] = value
        ranks = Ranks(rank, world, agree)
        source: dict[str, Any] = {"kind": "images", "path": os.fspath(root)}
        if labels is not None:
            source["labels"] = os.fspath(labels)
        ahead = 2 if prefetch_factor is None else prefetch_factor
        loading: dict[str, Any] = {
            "batch_size": batch_size * ranks.world, "seed": seed,
            "shuffle": shuffle, "cache": cache, "on_bad": on_bad,
            "prefetch": ahead * max(1, num_workers or 1),
            "tail": "drop" if drop_last else "exact"}
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
            super().__init__(job, (), side, ranks)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by their numbers."""
        return list(self.statistics["label"]["classes"])

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.classes)}


def image_settings(transform: object) -> dict[str, Any]:
    """The section `image` of a job that does what this `Compose` of torchvision
    does, whose parts are told by their names. Raises RequestError for a part that
    is not done here."""
    made: dict[str, Any] = {"train": "none", "flip": 0.0, "dtype": "uint8"}
    parts = getattr(transform, "transforms", None)
    before: list[str] = []
    for part in [transform] if parts is None else parts:
        name = type(part).__name__
        _check_order(name, before, made)
        before.append(name)
        if name in AUGMENTS:
            made.setdefault("augment", []).append(augment_entry(part))
            continue
        if name not in _PARTS:
            raise refused(
                "images.transform", "cannot make the pictures",
                f"transform, {name}", "this transform is not done here",
                "leave it out, do it on the batch, or use torchvision with "
                "penstock.DataLoader; done are " + ", ".join(sorted([*_PARTS, *AUGMENTS])))
        _PARTS[name](part, made)
    if "size" not in made:
        raise refused("images.transform", "cannot make the pictures",
                      "transform", "it does not say the size of pictures",
                      "add RandomResizedCrop, CenterCrop, or Resize to "
                      "[height, width]")
    made["val"] = made["train"]
    return made


_SIZES = ("RandomResizedCrop", "Resize", "CenterCrop")
_FLIPS = ("RandomHorizontalFlip",)
_TENSORS = ("ToTensor", "PILToTensor", "ToImage")


def _check_order(name: str, before: list[str], made: dict[str, Any]) -> None:
    """Refuses a part that means something else behind those before it."""
    sizes = [one for one in before if one in _SIZES]
    shrunk = name == "CenterCrop" and sizes == ["Resize"] and "size" not in made
    why = ""
    if name in _SIZES and sizes and not shrunk:
        why = (f"{sizes[-1]} stands before it: of those that crop or resize there "
               "is one, or Resize(256) and then CenterCrop")
    elif name in _SIZES and any(one in _TENSORS for one in before):
        why = "it resizes a tensor, which torchvision does otherwise than a picture"
    elif name == "Grayscale" and sizes:
        why = f"it makes a picture grey that {sizes[-1]} has resized in colour"
    elif name in AUGMENTS and name != "RandomErasing":
        if not sizes:
            why = "it stands before the part that crops or resizes"
        elif any(one in _TENSORS for one in before):
            why = "it changes a tensor, which torchvision does otherwise than a picture"
    elif name == "RandomErasing" and not any(one in _TENSORS for one in before):
        why = "it erases a part of a tensor, and no ToTensor stands before it"
    elif name in (*_FLIPS, *_TENSORS, "Normalize", "ToDtype"):
        erased = [one for one in before if one in AUGMENTS
                  and (one == "RandomErasing" or name in _FLIPS)]
        if erased:
            why = f"{erased[-1]} stands before it"
    if why:
        raise refused("images.transform", "cannot make the pictures",
                      f"transform, {name}", why,
                      "put Grayscale first, then one crop or resize, "
                      "RandomHorizontalFlip, what augments, ToTensor, Normalize "
                      "and RandomErasing")


def _size(size: Any) -> list[int]:
    return [int(size)] * 2 if isinstance(size, int) else [
        int(side) for side in (list(size) * 2)[:2]]


def _interpolation(part: Any, made: dict[str, Any]) -> None:
    found = getattr(part, "interpolation", "bilinear")
    made["interpolation"] = str(getattr(found, "value", found)).lower()


def _random_resized_crop(part: Any, made: dict[str, Any]) -> None:
    made.update(train="random_resized_crop", size=_size(part.size),
                scale=list(part.scale), ratio=list(part.ratio))
    _interpolation(part, made)


def _resize(part: Any, made: dict[str, Any]) -> None:
    if getattr(part, "max_size", None) is not None:
        raise refused("images.transform", "cannot make the pictures",
                      "transform, Resize", "max_size is not done here",
                      "leave it out")
    sides = [part.size] if isinstance(part.size, int) else list(part.size)
    if len(sides) == 2:
        made.update(train="resize", size=_size(sides))
    else:
        made["resize"] = int(sides[0])
    _interpolation(part, made)


def _center_crop(part: Any, made: dict[str, Any]) -> None:
    if "resize" not in made:
        raise refused("images.transform", "cannot make the pictures",
                      "transform, CenterCrop",
                      "no Resize of the short side stands before it",
                      "add Resize(256) before it")
    made.update(train="resize_center", size=_size(part.size))


def _flip(part: Any, made: dict[str, Any]) -> None:
    made["flip"] = float(part.p)


def _grey(part: Any, made: dict[str, Any]) -> None:
    if getattr(part, "num_output_channels", 1) != 1:
        raise refused("images.transform", "cannot make the pictures",
                      "transform, Grayscale", "it makes more than one channel",
                      "use Grayscale(1)")
    made["mode"] = "L"


def _float(part: Any, made: dict[str, Any]) -> None:
    made["dtype"] = "float32"


def _dtype(part: Any, made: dict[str, Any]) -> None:
    name = str(part.dtype).rsplit(".", maxsplit=1)[-1]
    if name != "uint8" and not getattr(part, "scale", True):
        raise refused("images.transform", "cannot make the pictures",
                      "transform, ToDtype", "it does not scale to 0 to 1",
                      "use scale=True")
    made["dtype"] = name


def _normalize(part: Any, made: dict[str, Any]) -> None:
    made.update(mean=[float(one) for one in part.mean],
                std=[float(one) for one in part.std])


def _nothing(part: Any, made: dict[str, Any]) -> None:
    pass


_PARTS = {"RandomResizedCrop": _random_resized_crop, "Resize": _resize,
          "CenterCrop": _center_crop, "RandomHorizontalFlip": _flip,
          "Grayscale": _grey, "ToTensor": _float, "PILToTensor": _nothing,
          "ToImage": _nothing, "ToDtype": _dtype,
          "ConvertImageDtype": _dtype, "Normalize": _normalize}


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
            f"><figcaption>{html.escape(caption)}</figcaption></figure>"
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
         classes: Sequence[str] | None = None, most: int = 64,
         columns: int = 8) -> Sheet:
    """The pictures of a batch as the model gets them, with their labels and what
    was drawn (`record_draws`). `field` names them (default: the first tensor that
    may be pictures). What was normalised needs `mean` and `std` to be seen in its
    colours; without them it is stretched from its least to its greatest number.

        penstock.show(loader.peek()).save("sheet.html")
    """
    arrays: Mapping[str, Any] = batch.host()
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


def _channels_of(shape: Iterable[int]) -> int:
    sizes = list(shape)
    if len(sizes) != 4:
        return 0
    return next((at for at in (1, 3) if sizes[at] in (1, 3)), 0)


def _caption(arrays: Mapping[str, Any], name: str, at: int,
             classes: Sequence[str] | None) -> str:
    told = []
    for other, array in arrays.items():
        if other != name and array.ndim == 1:
            value = array[at].item()
            known = classes is not None and isinstance(value, int)
            told.append(f"{other} {classes[value]}" if known and classes
                        else f"{other} {value}")
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
