"""A Compose of torchvision as a job's section `image`."""

from __future__ import annotations

from typing import Any, Iterator

from .augment import AUGMENTS, augment_entry, interpolation_of, numbers_of
from .errors import refused


def image_settings(transform: object) -> dict[str, Any]:
    """The section `image` of a job that does what this `Compose` of torchvision
    does, whose parts are told by their names. Raises RequestError for a part that
    is not done here."""
    made: dict[str, Any] = {"train": "none", "flip": 0.0, "dtype": "uint8"}
    before: list[str] = []
    for part in _parts_of(transform):
        name = type(part).__name__
        _check_order(name, before, made)
        before.append(name)
        if name in AUGMENTS:
            made.setdefault("augment", []).append(augment_entry(part))
            continue
        if name in _OF_BATCHES:
            raise _refused(name, "the transform mixes a batch, not a picture",
                           'give ImageFolder operations=[{"'
                           + name.lower() + '": ["image"], "labels": ["label"]}]'
                           ": a job's loader.operations")
        if name not in _PARTS:
            raise _refused(
                name, "this transform is not supported",
                "leave it out, do it on the batch, or use torchvision with "
                "penstock.DataLoader; supported are " + ", ".join(sorted([*_PARTS, *AUGMENTS])))
        _PARTS[name](part, made)
    if "size" not in made:
        raise refused("images.transform", "cannot make the pictures",
                      "transform", "the transform does not set the size of pictures",
                      "add RandomResizedCrop, CenterCrop, or Resize to "
                      "[height, width]")
    made["val"] = made["train"]
    return made


def _parts_of(transform: object) -> Iterator[object]:
    """Those of a Compose, also where it stands in another one."""
    parts = getattr(transform, "transforms", None)
    if parts is None or type(transform).__name__.startswith("Random"):
        yield transform
        return
    for part in parts:
        yield from _parts_of(part)


def _refused(name: str, why: str, what_next: str) -> Exception:
    return refused("images.transform", "cannot make the pictures",
                   f"transform, {name}", why, what_next)


_OF_BATCHES = ("MixUp", "CutMix")
_SIZES = ("RandomResizedCrop", "Resize", "CenterCrop")
_FLIPS = ("RandomHorizontalFlip",)
_TENSORS = ("ToTensor", "PILToTensor", "ToImage")
_FLOATS = ("ToDtype", "ConvertImageDtype")


def _check_order(name: str, before: list[str], made: dict[str, Any]) -> None:
    """Refuses a part that means something else behind those before it."""
    sizes = [one for one in before if one in _SIZES]
    shrunk = name == "CenterCrop" and sizes == ["Resize"] and "size" not in made
    why = ""
    moved = [one for one in before if one in _FLIPS or one in AUGMENTS]
    if name == "CenterCrop" and shrunk and moved:
        # Of 51 pixels the middle 44 are others when they are mirrored.
        why = f"{moved[-1]} comes before it, so it would crop other pixels"
    elif name in _SIZES and sizes and not shrunk:
        why = (f"{sizes[-1]} comes before it, but only one transform may crop or "
               "resize, or Resize(256) followed by CenterCrop")
    elif name in _SIZES and any(one in _TENSORS for one in before):
        why = ("it resizes a tensor, which torchvision treats differently from a "
               "picture")
    elif name == "Grayscale" and sizes:
        why = f"it makes a picture grey after {sizes[-1]} resized it in colour"
    elif name in AUGMENTS and name != "RandomErasing":
        if not sizes:
            why = "it comes before the transform that crops or resizes"
        elif any(one in _TENSORS for one in before):
            why = ("it changes a tensor, which torchvision treats differently from "
                   "a picture")
    elif name == "RandomErasing" and not any(one in _TENSORS for one in before):
        why = "it erases a part of a tensor, but no ToTensor comes before it"
    elif name in (*_FLIPS, *_TENSORS, *_FLOATS, "Normalize"):
        erased = [one for one in before if one in AUGMENTS
                  and (one == "RandomErasing" or name in _FLIPS)]
        if erased:
            why = f"{erased[-1]} comes before it"
        elif name in (*_FLIPS, "Normalize") and name in before:
            why = "it appears twice"
    if why:
        raise _refused(name, why,
                       "put Grayscale first, then one crop or resize, "
                       "RandomHorizontalFlip, what augments, ToTensor, Normalize "
                       "and RandomErasing")


def _size(size: Any) -> list[int]:
    return [int(size)] * 2 if isinstance(size, int) else [
        int(side) for side in (list(size) * 2)[:2]]


def _interpolation(part: Any, made: dict[str, Any]) -> None:
    made["interpolation"] = interpolation_of(
        part, ("bilinear", "bicubic", "lanczos", "nearest"))


def _random_resized_crop(part: Any, made: dict[str, Any]) -> None:
    made.update(train="random_resized_crop", size=_size(part.size),
                scale=list(part.scale), ratio=list(part.ratio))
    _interpolation(part, made)


def _resize(part: Any, made: dict[str, Any]) -> None:
    if getattr(part, "max_size", None) is not None:
        raise _refused("Resize", "max_size is not supported", "leave it out")
    sides = [part.size] if isinstance(part.size, int) else list(part.size)
    if len(sides) == 2:
        made.update(train="resize", size=_size(sides))
    else:
        made["resize"] = int(sides[0])
    _interpolation(part, made)


def _center_crop(part: Any, made: dict[str, Any]) -> None:
    if "resize" not in made:
        raise _refused("CenterCrop", "no Resize of the short side comes before it",
                       "add Resize(256) before it")
    made.update(train="resize_center", size=_size(part.size))


def _flip(part: Any, made: dict[str, Any]) -> None:
    made["flip"] = float(part.p)


def _grey(part: Any, made: dict[str, Any]) -> None:
    if getattr(part, "num_output_channels", 1) != 1:
        raise _refused("Grayscale", "it makes more than one channel",
                       "use Grayscale(1)")
    made["mode"] = "L"


def _float(part: Any, made: dict[str, Any]) -> None:
    made["dtype"] = "float32"


_DTYPES = ("uint8", "float32", "bfloat16", "float16")


def _dtype(part: Any, made: dict[str, Any]) -> None:
    kind = type(part).__name__
    name = str(part.dtype).rsplit(".", maxsplit=1)[-1]
    if name not in _DTYPES:
        raise _refused(kind, f"found {part.dtype}",
                       "give it one dtype: " + ", ".join(_DTYPES))
    if name == "uint8" and "mean" in made:
        raise _refused(kind, "it converts the output of Normalize to bytes",
                       "leave one of the two out")
    # Between floats there is nothing to scale.
    if (name == "uint8") != (made["dtype"] == "uint8") and not getattr(
            part, "scale", True):
        raise _refused(kind, "it does not scale "
                       + ("to 0 to 255" if name == "uint8" else "to 0 to 1"),
                       "use scale=True")
    made["dtype"] = name


def _normalize(part: Any, made: dict[str, Any]) -> None:
    if made["dtype"] == "uint8":
        raise _refused("Normalize", "the pictures are uint8 at this point",
                       "add ToTensor, or ToDtype(torch.float32, scale=True), "
                       "before it")
    channels = 1 if made.get("mode") == "L" else 3
    made.update(mean=_of_channels(part.mean, channels),
                std=_of_channels(part.std, channels))


def _of_channels(found: Any, channels: int) -> list[float]:
    """One number is that of all channels, as in torch."""
    numbers = numbers_of(found)
    return numbers * channels if len(numbers) == 1 else numbers


def _rgb(part: Any, made: dict[str, Any]) -> None:
    if made.get("mode") == "L":
        raise _refused("RGB", "Grayscale comes before it", "leave one of the two out")


def _nothing(part: Any, made: dict[str, Any]) -> None:
    pass


_PARTS = {"RandomResizedCrop": _random_resized_crop, "Resize": _resize,
          "CenterCrop": _center_crop, "RandomHorizontalFlip": _flip,
          "Grayscale": _grey, "ToTensor": _float, "PILToTensor": _nothing,
          "ToImage": _nothing, "ToPureTensor": _nothing, "RGB": _rgb,
          "ToDtype": _dtype, "ConvertImageDtype": _dtype, "Normalize": _normalize}
