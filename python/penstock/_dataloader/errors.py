"""Errors of Penstock that are, too, what torch's DataLoader raises there."""

from __future__ import annotations

from ..errors import RequestError, SourceError, TransformError


class WorkerDied(SourceError, RuntimeError):
    """A worker process ended before its work was done."""


class WorkerTimeout(SourceError, TimeoutError, RuntimeError):
    """No batch came within `timeout` seconds."""


class NotPicklable(RequestError, TypeError):
    """Something cannot be sent to the worker processes."""


class CollateError(TransformError, RuntimeError):
    """The items of a batch do not fit together."""


class CollateTypeError(CollateError, TypeError):
    """An item holds something that has no place in a batch."""
