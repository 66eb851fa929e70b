"""Text in the cells of CSV files, which spreadsheets open.

A spreadsheet takes a cell that begins with =, +, -, @, a tab or a carriage return for a formula, and a name may come
from anywhere. Such text gets an apostrophe in front, which spreadsheets hide; numbers stay as they are. Where text
begins with apostrophes and such a character, it gets one more: so reading takes exactly one away.
"""

from __future__ import annotations

import re
from typing import Any

FORMULA = re.compile(r"'*[=+\-@\t\r]")


def cell(value: Any) -> Any:
    """Return what to write for a value.

    Examples
    --------
    >>> [cell(value) for value in ("=1+1", "car 7", -3.5, "-3.5", "-x")]
    ["'=1+1", 'car 7', -3.5, '-3.5', "'-x"]
    """
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) and not _is_number(value) else value


def text_of_cell(written: str) -> str:
    """Return the text that `cell` has written.

    Examples
    --------
    >>> [text_of_cell(cell(text)) for text in ("=1+1", "'=1+1", "it's")]
    ['=1+1', "'=1+1", "it's"]
    """
    return written[1:] if written.startswith("'") and FORMULA.match(written) else written


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
