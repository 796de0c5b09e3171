"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

# Of a long list, this many items are shown.
SHOWN = 5


def grouped(count: int) -> str:
    """
    >>> grouped(1234567)
    '1 234 567'
    """
    return f"{count:,}".replace(",", " ")


def counted(count: int, what: str) -> str:
    """
    >>> counted(1, "format"), counted(0, "format")
    ('1 format', '0 formats')
    """
    return f"{grouped(count)} {what}{'' if count == 1 else 's'}"


def enumeration(texts: Sequence[str]) -> str:
    """
    >>> enumeration(["orders/0 offset 3", "b", "c", "d", "e", "f", "g"])
    'orders/0 offset 3, b, c, d, e and 2 more'
    """
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more
