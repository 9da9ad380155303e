"""The module that a run trains: found by its name, and made of what the data
set knows."""

from __future__ import annotations

import importlib.util
import inspect
import math
import os
import sys
from typing import Any, Callable, Mapping, NoReturn

from ..arguments import did_you_mean
from ..errors import RequestError, refused, said, worded
from .raised import place_in, told


class Field:
    """What is known of a field of the job, or of a tensor beside it, when a
    module is made.

    >>> about = Field("species", "int64", (), {"classes": ["a", "b"]}, True)
    >>> about.classes, about.shape, about.size
    (['a', 'b', None], (), 1)
    """

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...],
                 statistics: Mapping[str, Any], unknown: bool = False) -> None:
        self.name = name
        #: As torch names it: "float32", "int64".
        self.dtype = dtype
        #: Of one row; of samples that differ in length, of one element.
        self.shape = shape
        #: What was found over the train rows, as in statistics.json.
        self.statistics = statistics
        #: Of a category, by number: its length is what an embedding and the
        #: last layer need. None, the last, stands for what is unknown. Of any
        #: other field it is None.
        self.classes: list[Any] | None = None
        if isinstance(statistics, Mapping) and "classes" in statistics:
            self.classes = list(statistics["classes"]) + (
                [None] if unknown else [])

    @property
    def size(self) -> int:
        """Numbers of a row."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        classes = f", {len(self.classes)} classes" if self.classes else ""
        return f"<Field {self.name}: {self.dtype} {list(self.shape)}{classes}>"


def fields_of(facts: Mapping[str, Any]) -> dict[str, Field]:
    """By the names of a batch's tensors, in their order."""
    recipes = {tensor: field for field in facts["fields"].values()
               for tensor in field["tensors"]}
    made = {}
    for name, tensor in facts["tensors"].items():
        field = recipes.get(name, {})
        category = field.get("recipe", {}).get("category", {})
        made[name] = Field(name, tensor["dtype"], tuple(tensor["shape"]),
                           field.get("statistics") or {},
                           category.get("unknown") == "last")
    return made


def _refuse(named: str, why: str, next: str,
            cause: BaseException | None = None) -> NoReturn:
    raise worded(RequestError, "model.class", "cannot use the model",
                 f"model.class, '{named}'", why, next) from cause


_EXAMPLE = 'name the model as "FILE.py:NAME": a subclass of torch.nn.Module, or ' \
    "a function that returns a module"


def found(named: str) -> Any:
    """What "FILE.py:NAME" names."""
    file, colon, name = named.rpartition(":")
    if not colon or not file.endswith(".py") or not name:
        _refuse(named, "the text does not have the form "
                       "FILE.py:NAME", _EXAMPLE)
    if not os.path.isfile(file):
        _refuse(named, f"there is no file '{file}' in {os.getcwd()}",
                "name the file relative to the current folder, or by its full "
                "path")
    path = os.path.abspath(file)
    known = sys.modules.get(os.path.basename(file)[:-len(".py")])
    module = known if known is not None and getattr(
        known, "__file__", None) == path else _imported(path, named)
    if not hasattr(module, name):
        _refuse(named, f"'{file}' has no '{name}'", did_you_mean(
            name, [each for each in vars(module)
                   if inspect.isclass(getattr(module, each))
                   and getattr(module, each).__module__ == module.__name__]
            or ["a class of torch.nn.Module"]))
    return getattr(module, name)


def _imported(path: str, named: str) -> Any:
    """The file as a module; what lies beside it can be imported in it."""
    name = os.path.basename(path)[:-len(".py")]
    if name in sys.modules:
        name = "penstock_model_" + name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        _refuse(named, "importing the file failed at "
                f"{place_in(error, path)}: {said(error)}", "correct the code "
                    "there", error)
    return module


def plain(module: Any) -> Any:
    """The module inside of what torch.compile() made of it; else itself. It has
    the parameters of its forward(), and the names of its weights."""
    return getattr(module, "_orig_mod", module)


def file_of(model: Any) -> str:
    """Where it was written, or ""."""
    model = plain(model)
    try:
        return inspect.getsourcefile(
            model if inspect.isclass(model) or inspect.isfunction(model)
            else type(model)) or ""
    except TypeError:
        return ""


def name_of(model: Any) -> str:
    """As a job names it: "FILE.py:NAME" where it can be found again so.

    >>> from collections import OrderedDict
    >>> name_of(OrderedDict).split("/")[-1]
    '__init__.py:OrderedDict'
    """
    model = plain(model)
    name = getattr(model, "__qualname__", type(model).__qualname__)
    file = file_of(model)
    known = "." not in name and file.endswith(".py")
    return f"{os.path.relpath(file)}:{name}" if known else name


def check(torch: Any, model: Any, section: Mapping[str, Any]) -> None:
    """Raises RequestError where `model` makes no module, or lacks a parameter
    that the job's section `model` names under "arguments"."""
    named = section["class"]
    if isinstance(model, torch.nn.Module):
        return
    if not callable(model):
        _refuse(named, f"the model is a {type(model).__name__}", _EXAMPLE)
    if inspect.isclass(model) and not issubclass(model, torch.nn.Module):
        _refuse(named, f"the class '{model.__name__}' is not a torch.nn.Module",
                "derive the class from torch.nn.Module")
    parameters = inspect.signature(model).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    for name in section.get("arguments", {}):
        if name not in parameters:
            raise refused("model.arguments", "cannot make the model",
                          f"model.arguments.{name}",
                          "the constructor has no such parameter",
                          did_you_mean(name, parameters))


def made(torch: Any, model: Any, facts: Mapping[str, Any],
         fields: Mapping[str, Field]) -> Any:
    """The module: `model` itself, or what the class or function makes."""
    check(torch, model, facts["model"])
    if isinstance(model, torch.nn.Module):
        return model
    named = facts["model"]["class"]
    given = _arguments(model, facts, fields)
    with told("it was made", file_of(model)):
        module = model(**given)
    if not isinstance(module, torch.nn.Module):
        _refuse(named, f"the function returned a {type(module).__name__}, not "
                       "a torch.nn.Module",
                "return the module")
    return module


def _arguments(model: Callable[..., Any], facts: Mapping[str, Any],
               fields: Mapping[str, Field]) -> dict[str, Any]:
    """For the constructor's parameters, by their names: the job's
    "arguments", then fields, then the rest of what is known."""
    target = facts["model"].get("target", "")
    known: dict[str, Any] = {
        "fields": dict(fields), "target": fields.get(target),
        "statistics": {name: field.statistics
                       for name, field in fields.items()},
        "steps": facts["steps"], **fields}
    given = dict(facts["model"].get("arguments", {}))
    for name, each in inspect.signature(model).parameters.items():
        if name in given or each.kind in (each.VAR_KEYWORD,
                                          each.VAR_POSITIONAL):
            continue
        if name in known and known[name] is not None:
            given[name] = known[name]
        elif each.default is each.empty:
            raise refused("model.arguments", "cannot make the model",
                          f"its constructor's parameter '{name}'",
                          "no value has that name", "set it in "
                          "model.arguments, give it a default, or use one of "
                          "these names: "
                          + ", ".join(known))
    return given
