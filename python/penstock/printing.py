"""Text that a terminal, a log or a page may show."""

from __future__ import annotations

import re

# C0, DEL and C1 control a terminal, the others turn the direction of writing;
# surrogates stand for bytes that are not UTF-8.
_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
                      "\ud800-\udfff]")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def printable(text: str, lines: bool = True) -> str:
    r"""The text with such characters escaped, as the engine does it. `lines`:
    ends of lines stay.

    >>> print(printable("a\x1b]0;b\x07\x9b\u202e\udcff\tö\nc"))
    a\u001b]0;b\u0007\u009b\u202e\xff\tö
    c
    >>> print(printable("a\nb", lines=False))
    a\nb
    """
    def escaped(found: re.Match[str]) -> str:
        char = found[0]
        if char == "\n" and lines:
            return char
        if 0xdc80 <= ord(char) <= 0xdcff:
            return f"\\x{ord(char) - 0xdc00:02x}"
        return _SHORT.get(char, f"\\u{ord(char):04x}")

    return _HOSTILE.sub(escaped, text)


def shown_gain(gain: float) -> str:
    """A gain in speed, as a share.

    >>> shown_gain(0.352), shown_gain(1.5), shown_gain(16.2)
    ('35 % faster', '2.5 x faster', '17 x faster')
    """
    return f"{100 * gain:.0f} % faster" if gain < 1 else \
        f"{1 + gain:.2g} x faster" if gain < 9 else f"{1 + gain:.0f} x faster"
