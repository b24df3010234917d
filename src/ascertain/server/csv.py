"""Lists as CSV: streamed, in UTF-8 with a BOM so that Excel shows Chinese, and without formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal

from starlette.responses import StreamingResponse

BOM = "\ufeff"
MEDIA = "text/csv; charset=utf-8"
# A cell that begins like this is run by spreadsheets; an apostrophe before it makes it text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "|", "%")


def cell(value: object) -> str:
    """Return a value as a cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Decimal):  # a credit is a number, though it begins with a minus
        return f"{value:f}"
    text = str(value).replace("\x00", "")
    return f"'{text}" if text.lstrip(" \u00a0\u3000").startswith(_FORMULA) else text


def lines(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as lines of CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()


def csv_answer(
    head: Sequence[str], pages: AsyncIterator[Iterable[Sequence[object]]], name: str
) -> StreamingResponse:
    """Return pages of rows as one file to download; `name` is plain ASCII."""

    async def parts() -> AsyncIterator[str]:
        yield BOM + lines([head])
        async for rows in pages:
            yield lines(rows)

    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(parts(), media_type=MEDIA, headers=headers)
