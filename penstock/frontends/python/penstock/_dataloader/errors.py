"""What goes wrong, and exceptions that travel from a helper to the loop."""
import pickle
import traceback


class LoaderError(RuntimeError):
    """An error of the loader itself, with the parts of every Penstock error.

    `code` is stable and dotted; `what`, `where`, `why` and `next` say what we
    were doing, on which thing, what was found, and one thing to try.
    """

    def __init__(self, code, what, where="", why="", next=""):
        self.code, self.what, self.where = code, what, where
        self.why, self.next = why, next
        text = what + (f" ({where})" if where else "")
        text += f": {why}" if why else ""
        super().__init__(text + (f"; {next}" if next else ""))

    def __reduce__(self):
        return type(self), (self.code, self.what, self.where, self.why,
                            self.next)


class WorkerDied(LoaderError):
    """A helper process ended before its work was done."""


class WorkerTimeout(LoaderError, TimeoutError):
    """No batch came within `timeout` seconds."""


class NotPicklable(LoaderError, TypeError):
    """Something cannot travel to the helper processes."""


class RequestError(LoaderError, ValueError):
    """The arguments make no sense together."""


_MOST_TEXT = 1 << 15  # of a traceback; its end says what happened


class _Plain(str):
    """Text that KeyError, which shows its argument by repr(), leaves whole."""

    def __repr__(self):
        return str(self)


class Carried:
    """An exception on its way to the thread of the loop.

    `reraise` raises the same type with the helper's traceback in the message;
    a type that cannot be made from one text is raised as it was, the traceback
    as its cause.
    """

    def __init__(self, error, where, detail=""):
        trace = "".join(traceback.format_exception(type(error), error,
                                                   error.__traceback__))
        said = f" ({detail})" if detail else ""
        self.text = (f"Caught {type(error).__name__} in {where}{said}.\n"
                     f"Original {trace[-_MOST_TEXT:]}")
        self.type, self.original = type(error), error
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            self.original = None
        try:
            pickle.dumps(self.type)
        except Exception:  # a class made inside a function: its nearest base
            self.type = next(base for base in type(error).__mro__
                             if base.__module__ == "builtins")

    def reraise(self):
        if issubclass(self.type, StopIteration):
            raise RuntimeError(self.text)  # it would end the loop in silence
        if isinstance(self.original, LoaderError):
            raise self.original
        try:
            again = self.type(_Plain(self.text) if self.type is KeyError
                              else self.text)
        except Exception:
            again = None
        if isinstance(again, self.type):
            raise again
        if self.original is not None:
            raise self.original from RuntimeError(self.text)
        raise RuntimeError(self.text)
