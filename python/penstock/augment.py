"""Transforms of torchvision that augment, as entries of a job's `augment`, and
what was drawn for them, in words."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Sequence

from .errors import refused


def augment_entry(part: Any) -> dict[str, Any]:
    """The entry that does what this transform does. Raises RequestError where it
    has a setting that is not done here."""
    name = type(part).__name__
    kind, settings = AUGMENTS[name]
    for key, default in (("expand", False), ("center", None)):
        if getattr(part, key, default) != default:
            raise refused("images.transform", "cannot use the transform",
                          f"transform, {name}", f"'{key}' is not supported",
                          f"leave '{key}' out")
    found: dict[str, Any] = {}
    for key, read in settings.items():
        value = read(part)
        if value is not None:
            found[key] = value
    return {kind: found}


def _number(key: str) -> Callable[[Any], Any]:
    return lambda part: getattr(part, key)


def _list(key: str) -> Callable[[Any], Any]:
    def read(part: Any) -> Any:
        found = getattr(part, key)
        return None if found is None else [float(one) for one in found]
    return read


def _ints(key: str) -> Callable[[Any], Any]:
    def read(part: Any) -> Any:
        found = getattr(part, key)
        return [int(one) for one in found] if isinstance(
            found, Iterable) else int(found)
    return read


def interpolation_of(part: Any, known: Sequence[str]) -> str:
    """Its name. Raises RequestError for an unsupported one."""
    found = getattr(part, "interpolation", "bilinear")
    name = str(getattr(found, "value", found)).lower()
    # With pictures of Pillow torchvision has one for both.
    name = "nearest" if name == "nearest-exact" else name
    if name not in known:
        raise refused("images.transform", "cannot make the pictures",
                      f"transform, {type(part).__name__}",
                      f"interpolation {name} is not supported",
                      "take one of " + ", ".join(known))
    return name


def _interpolation(part: Any) -> str:
    return interpolation_of(part, ("nearest", "bilinear", "bicubic"))


def numbers_of(found: Any) -> list[float]:
    """Those of a list, or of a tensor, or one number."""
    if hasattr(found, "__len__") and getattr(found, "ndim", 1) != 0:
        return [float(one) for one in found]
    return [float(found)]


def _fill(part: Any) -> Any:
    """Whole numbers: torchvision cuts off the others for pictures, too."""
    found = getattr(part, "fill", 0)
    if isinstance(found, Mapping):
        raise refused("images.transform", "cannot make the pictures",
                      f"transform, {type(part).__name__}",
                      "fill is a dict by input type",
                      "pass fill as a number, or as one number for each channel")
    if found is None:
        return 0
    whole = [int(one) for one in numbers_of(found)]
    return whole[0] if len(whole) == 1 else whole


def _value(part: Any) -> Any:
    found = part.value
    if found is None or isinstance(found, str):
        return "random"
    return numbers_of(found) if hasattr(found, "__len__") else float(found)


_Settings = dict[str, Callable[[Any], Any]]
_MOVES: _Settings = {"interpolation": _interpolation, "fill": _fill}
_P: _Settings = {"p": _number("p")}

# By the name of the transform: the kind of the entry, and its settings.
AUGMENTS: dict[str, tuple[str, _Settings]] = {
    "RandomRotation": ("rotation", {"degrees": _list("degrees"), **_MOVES}),
    "RandomAffine": ("affine", {
        "degrees": _list("degrees"), "translate": _list("translate"),
        "scale": _list("scale"), "shear": _list("shear"), **_MOVES}),
    "ColorJitter": ("color_jitter", {
        key: _list(key)
        for key in ("brightness", "contrast", "saturation", "hue")}),
    "RandAugment": ("rand_augment", {
        **{key: _number(key)
           for key in ("num_ops", "magnitude", "num_magnitude_bins")}, **_MOVES}),
    "TrivialAugmentWide": ("trivial_augment_wide", {
        "num_magnitude_bins": _number("num_magnitude_bins"), **_MOVES}),
    "GaussianBlur": ("gaussian_blur", {"kernel_size": _ints("kernel_size"),
                                       "sigma": _list("sigma")}),
    "RandomErasing": ("random_erasing", {
        **_P, "scale": _list("scale"), "ratio": _list("ratio"),
        "value": _value}),
    "RandomVerticalFlip": ("vertical_flip", _P),
    "RandomGrayscale": ("grayscale", _P),
    "RandomInvert": ("invert", _P),
    "RandomPosterize": ("posterize", {"bits": _number("bits"), **_P}),
    "RandomSolarize": ("solarize", {"threshold": _number("threshold"), **_P}),
    "RandomAdjustSharpness": ("adjust_sharpness", {
        "factor": _number("sharpness_factor"), **_P}),
    "RandomAutocontrast": ("auto_contrast", _P),
    "RandomEqualize": ("equalize", _P),
}

# By the number that NAME_augment begins with: what it is, and how many numbers
# follow.
CHANGES = {1: ("rotate", 1), 2: ("affine", 6), 3: ("brightness", 1),
           4: ("contrast", 1), 5: ("saturation", 1), 6: ("hue", 1),
           7: ("sharpness", 1), 8: ("posterize", 1), 9: ("solarize", 1),
           10: ("auto_contrast", 0), 11: ("equalize", 0), 12: ("invert", 0),
           13: ("blur", 3), 14: ("erase", 4), 15: ("vertical_flip", 0),
           16: ("grayscale", 0)}


def changes_text(changes: Any) -> str:
    """A picture's row of NAME_augment, `[changes, 8]`, in words."""
    told = []
    for change in changes.tolist():
        if int(change[0]) in CHANGES:
            name, count = CHANGES[int(change[0])]
            told.append(" ".join([name, *(f"{number:.3g}"
                                          for number in change[1:1 + count])]))
    return "; ".join(told)
