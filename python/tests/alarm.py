"""An exception that comes at any moment, as that of Ctrl-C does."""
import signal
import sys


class Rang(BaseException):
    """Raised by the alarm's signal, between any two instructions."""


def _ring(*_):
    raise Rang


def listen(case):
    """For the rest of a test. What is raised while something is freed cannot
    be caught, and is not shown."""
    case.addCleanup(signal.signal, signal.SIGALRM,
                    signal.signal(signal.SIGALRM, _ring))
    case.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
    sys.unraisablehook = lambda _: None


def rings(seconds, work):
    """Whether the alarm rang in so many seconds, before `work` was done."""
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            work()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Rang:
        return True
    return False
