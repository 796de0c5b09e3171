"""Numbers, lists and long values as people read them."""

from __future__ import annotations

import re
from collections.abc import Sequence

# The number of items that are shown of a long list.
SHOWN = 5
# The number of characters that are shown of a longer word.
MOST_OF_WORD = 300
UNITS = ("B", "KB", "MB", "GB", "TB")
PERIODS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def grouped(count: int) -> str:
    """Returns a number with blanks between its groups of three digits.

    >>> grouped(1234567)
    '1 234 567'
    """
    return f"{count:,}".replace(",", " ")


def counted(count: int, what: str) -> str:
    """Returns a number with the noun for what it counts.

    >>> counted(1, "format"), counted(0, "format")
    ('1 format', '0 formats')
    """
    return f"{grouped(count)} {what}{'' if count == 1 else 's'}"


def enumeration(texts: Sequence[str]) -> str:
    """Returns the first texts of a list in words, with the number of those that are left out.

    >>> enumeration(["orders/0 offset 3", "b", "c", "d", "e", "f", "g"])
    'orders/0 offset 3, b, c, d, e and 2 more'
    """
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def brief(text: str, most: int = MOST_OF_WORD) -> str:
    """Returns a text in which words that are too long to read are cut, such as a number of thousands of digits.

    >>> brief(f'n: "{"9" * 5000}" is no number') == f'n: "{"9" * 299}… is no number'
    True
    """
    return re.sub(rf"(\S{{{most}}})\S+", r"\1…", text)


def bytes_in_words(size: int | None) -> str:
    """Returns a number of bytes as a person reads it; an empty text if it is not known.

    >>> bytes_in_words(0), bytes_in_words(1023), bytes_in_words(1_500_000), bytes_in_words(None)
    ('0 B', '1.0 KB', '1.5 MB', '')
    """
    number, unit = float(size or 0), 0
    while number >= 1000 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {UNITS[unit]}" if unit else "" if size is None else f"{size} B"


def age_in_words(seconds: float) -> str:
    """Returns an age in its largest unit.

    >>> age_in_words(59), age_in_words(3 * 3600 + 1), age_in_words(86_400), age_in_words(-5)
    ('less than a minute', '3 hours', '1 day', 'less than a minute')
    """
    for unit, length in PERIODS:
        if seconds >= length:
            return counted(int(seconds // length), unit)
    return "less than a minute"
