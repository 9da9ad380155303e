"""What a notebook shows of a loader and of a verdict: a little HTML of its own,
escaped, with no script and nothing to load."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Protocol

from .printing import printable, shown_gain

_CELL = "text-align:left;padding:1px 8px"
_BAR = ("display:inline-block;height:0.8em;background:#4878cf;"
        "vertical-align:middle")
_BAR_PX = 200


class Verdict(Protocol):
    """What is shown of a verdict: see `penstock.explanation.Explanation`."""

    au: float | None
    parts: dict[str, float | None]
    samples_per_s: float | None
    limit: str
    cause: str
    because: str
    actions: list[dict[str, Any]]
    no_action: str | None


def verdict_html(verdict: Verdict) -> str:
    """The verdict, its reason, the shares as bars, and what to change."""
    rate = verdict.samples_per_s
    head = (f"accelerator utilisation {_percent(verdict.au)}, "
            f"{'n/a' if rate is None else f'{rate:.0f}'} samples/s")
    parts = [f"<b>{_text(verdict.limit)}</b>: {_text(verdict.cause)}",
             f"because {_text(verdict.because)}", _text(head)]
    if verdict.no_action:
        parts.append(f"nothing to set: {_text(verdict.no_action)}")
    bars = _table((name, _bar(share)) for name, share
                  in verdict.parts.items() if share)
    actions = _table((_text(action["knob"]), _text(
        f"{action['from']!r} to {action['to']!r}: predicted "
        f"{shown_gain(action['predicted_gain'])}; costs "
        f"{action['cost']}")) for action in verdict.actions)
    return f"<div>{'<br>'.join(parts)}{bars}{actions}</div>"


def loader_html(shown: str, stats: Mapping[str, Any] | None) -> str:
    """The loader's own words, and what it reads, where and how fast; only the
    words where it is closed."""
    title = f"<b>{_text(shown.removeprefix('<').removesuffix('>'))}</b>"
    if stats is None:
        return f"<div>{title}</div>"
    rate, rows = stats["samples_per_s"], stats["dataset"]
    tier = stats["plan"]["tier"]
    table = _table([
        ("rows", _text(f"{rows['train']} to train, {rows['val']} held out")),
        ("rows live on", _text(tier)),
        ("device", _text(stats["settings"]["device_used"])),
        ("steps taken", _text(stats["steps"])),
        ("samples/s", _text("n/a" if rate is None else f"{rate:.0f}")),
        ("utilisation", _text(_percent(stats["au"]))),
        ("limit", _text(stats["verdict"]["limit"]))])
    return f"<div>{title}{table}</div>"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    """Of names, which are escaped here, and HTML."""
    lines = "".join(f'<tr><th style="{_CELL}">{_text(name)}</th>'
                    f'<td style="{_CELL}">{cell}</td></tr>'
                    for name, cell in rows)
    return f"<table>{lines}</table>" if lines else ""


def _bar(share: float) -> str:
    return (f'<span style="{_BAR};width:{round(_BAR_PX * share)}px"></span> '
            f"{_percent(share)}")


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f} %"


def _text(thing: object) -> str:
    import html

    return html.escape(printable(str(thing)))
