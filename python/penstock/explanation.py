"""The verdict on a loop, for people."""

from __future__ import annotations

import json
from typing import Any, Mapping

from .notebook import verdict_html
from .printing import printable, shown_gain

_LEAST = 0.02  # of a gain: less is not worth a word


class Explanation:
    """What limits a loop and what to change. `str()` is for people; `limit`,
    `stage`, `cause`, `because`, `actions` and `no_action` (why there is no
    action, else None) are for programs.

    `limit` is "compute", "data", "copy", "order", "host", "outside" or
    "unknown"; `au` is the utilisation of the accelerator, None where it is not
    known.
    `penstock.DataLoader` says "compute", "data" or "unknown".
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        verdict = report["verdict"]
        self.report = dict(report)
        self.au: float | None = report["au"]
        self.parts: dict[str, float | None] = dict(report["parts"])
        self.samples_per_s: float | None = report["samples_per_s"]
        self.limit: str = verdict["limit"]
        self.stage: str | None = verdict["stage"]
        self.cause: str = verdict["cause"]
        self.because: str = verdict["because"]
        self.actions: list[dict[str, Any]] = list(verdict["actions"])
        self.no_action: str | None = verdict["no_action"]

    def __str__(self) -> str:
        known = "n/a" if self.au is None else f"{100 * self.au:.1f} %"
        rate = self.samples_per_s
        speed = "n/a" if rate is None else f"{rate:.0f}"
        lines = [f"accelerator utilisation {known}, {speed} samples/s",
                 f"{self.limit}: {self.cause}", f"  because {self.because}"]
        for action in self.actions:
            lines.append(
                f"  set {action['knob']} from {json.dumps(action['from'])} to "
                f"{json.dumps(action['to'])}: predicted "
                f"{shown_gain(action['predicted_gain'])}; costs "
                f"{action['cost']}")
        drop_in = self.report.get("drop_in")
        if drop_in:
            lines += _drop_in_line(drop_in)
        pauses = self.report.get("pauses")
        if pauses and pauses["count"]:
            lines.append(f"  left out: {pauses['count']} pause(s) of the loop, "
                         f"{pauses['seconds']:.1f} s in all")
        if self.no_action:
            lines.append(f"  nothing to set: {self.no_action}")
        return printable("\n".join(lines))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return verdict_html(self)


def _drop_in_line(drop_in: Mapping[str, Any]) -> list[str]:
    """What penstock.DataLoader would give; nothing where that is not 2 %."""
    up_to, least = drop_in.get("up_to"), drop_in["gain"]
    most = up_to["gain"] if up_to else least
    if most < _LEAST:
        return []
    gain = shown_gain(least)
    if up_to and shown_gain(most) != gain:
        none = least < _LEAST
        low = "none" if none else gain.removesuffix(" faster")
        gain = f"between {low} and {shown_gain(most)}: {up_to['why']}"
    return [f"  penstock.DataLoader with {drop_in['workers']} workers "
            f"instead: predicted {gain}"]
