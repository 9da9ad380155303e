"""What it costs a DataLoader of torch to start its workers again in each epoch."""

from __future__ import annotations

from typing import Any

_LEAST_GAIN = 0.02  # that is worth a word


class EpochStarts:
    """The seconds for which a loop waited at the seams of its epochs: until the
    first batch of one was there, and until its workers had ended."""

    def __init__(self) -> None:
        self.count = 0
        self.first_s = 0.0  # of the first epoch
        self.again_s = 0.0  # of the others, with the ends before them
        self.again_made_s = 0.0  # of that, their first batches were made
        self._ended_s = 0.0

    def started(self, seconds: float, made_s: float) -> None:
        """The first batch of an epoch is there. `made_s`: of `seconds`, it was
        made."""
        self.count += 1
        if self.count == 1:
            self.first_s = seconds
        else:
            self.again_s += self._ended_s + seconds
            self.again_made_s += made_s
        self._ended_s = 0.0

    def ended(self, seconds: float) -> None:
        """An epoch is over."""
        self._ended_s = seconds

    def add_to(self, report: dict[str, Any], spent_s: float, wait_s: float
               ) -> None:
        """Names the start of workers in a report where that costs time.
        `spent_s`: of the loop without the seams, `wait_s` of that for
        batches."""
        again = self.count - 1
        report["epoch_starts"] = {"count": self.count,
                                  "seconds": self.first_s + self.again_s}
        saved = self.again_s - self.again_made_s
        remains = spent_s + self.first_s + self.again_made_s
        if again < 1 or saved < _LEAST_GAIN * remains:
            return
        _scale(report, spent_s / (spent_s + self.again_s))
        verdict = report["verdict"]
        verdict["actions"] = sorted([*verdict["actions"], {
            "knob": "persistent_workers", "from": False, "to": True,
            "predicted_gain": saved / remains,
            "cost": "the memory of the workers between epochs"}],
            key=lambda action: -action["predicted_gain"])
        verdict["no_action"] = None
        if saved <= wait_s + self.again_made_s:
            return
        verdict.update(
            limit="data", stage="start of the workers",
            cause="the workers are started again in each epoch, and the loop "
                  "waits until they are ready",
            because=f"{self.count} epochs started; after the first one, a "
                    f"start took {saved / again:.2f} s on average, "
                    f"{saved:.1f} s in all; the rest of the loop took "
                    f"{spent_s + self.again_made_s:.1f} s")


def _scale(report: dict[str, Any], share: float) -> None:
    """The numbers of a report over a time of which they had `share`; the loop
    waited for data in the rest."""
    for key in ("au", "samples_per_s"):
        if report[key] is not None:
            report[key] *= share
    parts = report["parts"]
    for key, part in parts.items():
        if part is not None:
            parts[key] = share * part
    if parts.get("wait_data") is not None:
        parts["wait_data"] += 1 - share
