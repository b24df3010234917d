"""Large bodies: whole and durable before anything is sent, stored once, gone when nobody needs
them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Iterator

import pytest

from ascertain import open_store
from ascertain.core.books import Blob, Spooled
from ascertain.core.errors import InputRefused, StoreCorrupt
from ascertain.core.model import Large
from ascertain.runtime import spool as spooling
from ascertain.runtime.spool import PART_BYTES, Spool, clean
from ascertain.store.base import Posting
from ascertain.testing import FakeClock
from ascertain.testing.story import Maker, write

DAY = 24 * 3600
CONTENT = b"\x00\xff a body \n" * (PART_BYTES // 4)  # some parts, the last one short


@pytest.fixture(params=["sqlite", "postgres"])
def spool(request: pytest.FixtureRequest, tmp_path) -> Iterator[Spool]:
    where = str(tmp_path / "ascertain.db")
    if request.param == "postgres":
        where = request.getfixturevalue("postgres_database")
    store = open_store(where)
    yield Spool(store, "default", FakeClock())
    store.close()


async def pieces(content: bytes, size: int = 70_001) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


def keep(spool: Spool, content: bytes = CONTENT, key: str = "a") -> Large:
    return asyncio.run(spool.keep(pieces(content), action="upload", key=key))


def rows(spool: Spool, table: str) -> list[dict[str, object]]:
    return [row for name, row in spool.store.rows() if name == table]


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, len(CONTENT)])
def test_what_is_kept_comes_back_byte_for_byte(spool: Spool, size: int) -> None:
    content = CONTENT[:size]
    large = keep(spool, content)
    assert large == Large(sha256=hashlib.sha256(content).hexdigest(), size=size)
    assert b"".join(spool.parts(large)) == content


def test_the_same_content_is_stored_once(spool: Spool) -> None:
    assert keep(spool, key="a") == keep(spool, key="b") == keep(spool, key="a")
    assert len({row["body"] for row in rows(spool, "blob")}) == 1
    assert sorted(str(row["key"]) for row in rows(spool, "spooled")) == ["a", "b"]


def test_another_namespace_does_not_see_it(spool: Spool) -> None:
    large = keep(spool)
    other = Spool(spool.store, "other", FakeClock())
    with pytest.raises(InputRefused, match="no body of"):
        next(other.parts(large))


def test_an_upload_that_ends_half_way_is_nobodys_and_is_removed(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(spool.keep(broken(), action="upload", key="a"))
    assert rows(spool, "blob") != [] == rows(spool, "spooled")
    assert clean(spool.store) == 0, "it may still be on its way"
    monkeypatch.setattr(spooling, "KEPT_WITHOUT", -1_000_000)
    assert clean(spool.store) == 1
    assert rows(spool, "blob") == []


def test_a_body_stays_as_long_as_its_operation_has_its_input(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = keep(spool, key="a")
    keep(spool, key="b")  # of no operation
    make = Maker()
    named = f'{{"h":"{large.sha256}"}}'
    change = make.claim("a", namespace="default", action="upload", input=named)
    assert write(spool.store, change) == [True]
    monkeypatch.setattr(spooling, "KEPT_WITHOUT", -1_000_000)
    clean(spool.store)
    assert [row["key"] for row in rows(spool, "spooled")] == ["a"]
    assert b"".join(spool.parts(large)) == CONTENT


def test_a_damaged_body_is_never_given_whole(spool: Spool) -> None:
    digest = hashlib.sha256(b"onetwo").hexdigest()
    row = Spooled(
        hash=digest, namespace="default", action="upload", key="a", body="b", size=6, parts=2,
        made_at=1,
    )  # fmt: skip
    parts = [Blob(body="b", part=n, data=base64.b64encode(d).decode()) for n, d in
             enumerate([b"one", b"tvo"])]  # fmt: skip
    lines = (("spooled_add", row), *(("blob_add", part) for part in parts))
    spool.store.post([Posting(lines)])
    given = []
    with pytest.raises(StoreCorrupt):
        given.extend(spool.parts(Large(sha256=digest, size=6)))
    assert given == [b"one"]
