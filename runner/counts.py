"""Numbers as people read them."""

from __future__ import annotations


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
