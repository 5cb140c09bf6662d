"""Valid ids of users and items, and their form as strings."""

from __future__ import annotations

import re
from numbers import Integral

MOST_CHARACTERS = 256
CONTROL = r"\x00-\x1f\x7f-\x9f"  # characters that are not allowed in ids
_CONTROL = re.compile(f"[{CONTROL}]")


def spelled(given: object) -> object:
    """An integer of any type as its digits; other values unchanged, for `check_id`.

    >>> spelled(42), spelled("042"), spelled(True)
    ('42', '042', True)
    """
    if isinstance(given, str | bool) or not isinstance(given, Integral):
        return given
    number = int(given)
    return str(number) if abs(number) < 10**64 else given


def is_text(text: str) -> bool:
    """Whether a string can be written as UTF-8: a lone surrogate (half of an emoji) cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_id(given: object, name: str = "id") -> str:
    """The id as a string; ValueError says why it is invalid.

    >>> check_id(42), check_id("ada")
    ('42', 'ada')
    """
    text = spelled(given)
    if not isinstance(text, str) or not text:
        raise ValueError(f"{name}: give a non-empty string or a whole number")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{name}: longer than {MOST_CHARACTERS} characters")
    if not is_text(text):
        raise ValueError(f"{name}: not valid Unicode (a lone surrogate)")
    if _CONTROL.search(text):
        raise ValueError(f"{name}: contains a control character")
    return text
