"""What an exception followed, and what wraps it, decides whether it is proof (law 13)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from ascertain.core.model import Done, NotDone, NotDoneKind, Unknown
from ascertain.targets.base import SendTrace
from ascertain.targets.classify import classify
from targets.serving import Server, answer, refused

# urllib3 2.8.0 leaves the socket of a failed try to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Post = Callable[[str], Any]


def with_urllib3(url: str) -> Any:
    """Redirects only, so that nothing but the pool manager's own second request shows."""
    with urllib3.PoolManager() as pool:
        retries = urllib3.Retry(connect=0, redirect=3)
        return pool.request("POST", url, body=b"x", timeout=2, retries=retries)


def with_aiohttp(url: str) -> Any:
    async def run() -> Any:
        async with aiohttp.ClientSession() as session, session.post(url, data=b"x") as got:
            return await got.read()

    return asyncio.run(run())


FOLLOWING: dict[str, Post] = {
    "httpx": lambda url: httpx.post(url, content=b"x", follow_redirects=True),
    "httpx2": lambda url: httpx2.post(url, content=b"x", follow_redirects=True),
    "requests": lambda url: requests.post(url, data=b"x", timeout=2),
    "urllib3": with_urllib3,
    "aiohttp": with_aiohttp,
}
EACH = pytest.mark.parametrize("post", FOLLOWING.values(), ids=FOLLOWING)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens."""
    with refused() as port:
        yield f"http://127.0.0.1:{port}/"


def raised(post: Callable[..., Any], *args: Any) -> BaseException:
    try:
        post(*args)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def proves(error: BaseException) -> bool:
    return isinstance(classify(error, None, single_request=True), NotDone)


# --- what it followed ---


@EACH
@pytest.mark.parametrize("status", ["303 See Other", "307 Temporary Redirect"])
def test_a_refused_port_after_a_redirect_proves_nothing(post, status, nobody) -> None:
    with Server(answer(status, Location=nobody)) as server:
        assert not proves(raised(post, server.url))
    assert len(server.requests) == 1


@EACH
def test_the_same_call_without_a_redirect_is_proof(post, nobody) -> None:
    assert proves(raised(post, nobody))


@EACH
def test_a_fall_back_after_a_lost_answer_proves_nothing(post, nobody) -> None:
    def fall_back(url: str) -> None:
        try:
            post(url)
        except Exception:
            post(nobody)

    with Server() as server:
        server.script = [server.hangs_up]
        assert not proves(raised(fall_back, server.url))


@pytest.mark.parametrize("name", ["httpx", "requests"])
def test_a_proxy_that_does_not_open_its_tunnel_proves_nothing(name) -> None:
    with Server(answer("502 Bad Gateway")) as proxy:
        via = proxy.url.removesuffix("/orders")
        posts: dict[str, Post] = {
            "httpx": lambda url: httpx.post(url, proxy=via),
            "requests": lambda url: requests.post(url, proxies={"https": via}, timeout=2),
        }
        assert not proves(raised(posts[name], "https://shop.example/"))
    assert proxy.connections == 1


# --- what wraps it ---


class Unavailable(Exception):
    """An error of an action's own."""


def wrapping(post: Post) -> Post:
    def wrapped(url: str) -> None:
        try:
            post(url)
        except Exception as error:
            raise Unavailable("shop") from error

    return wrapped


@EACH
def test_an_error_of_ones_own_speaks_through_its_cause(post, nobody) -> None:
    assert proves(raised(wrapping(post), nobody))
    with Server() as server:
        server.script = [server.hangs_up]
        assert not proves(raised(wrapping(post), server.url))


def test_an_error_out_of_a_thread_keeps_its_proof(nobody) -> None:
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert proves(raised(pool.submit(FOLLOWING["requests"], nobody).result))


def test_a_group_is_proof_only_if_each_member_is(nobody) -> None:
    error = raised(FOLLOWING["httpx2"], nobody)
    assert proves(ExceptionGroup("all", [error, error]))
    assert not proves(ExceptionGroup("some", [error, ValueError("x")]))


def test_a_chain_without_end_ends() -> None:
    one, two = raised(int, "x"), ValueError("2")
    one.__cause__, two.__cause__ = two, one
    assert not proves(one)


# --- what the wire saw ---


def seen(finding: Any) -> SendTrace:
    trace = SendTrace()
    trace.admit()
    trace.start()
    trace.finding = finding
    return trace


def test_a_refusal_of_the_one_request_stands_whatever_was_raised_later() -> None:
    refusal = NotDone(NotDoneKind.THROTTLED, "HTTP 429", retry_after=7)
    assert classify(KeyError("id"), seen(refusal)) is refusal


def test_a_success_whose_code_then_fails_is_unknown_with_its_evidence() -> None:
    found = classify(KeyError("id"), seen(Done(evidence={"status": 201})))
    assert isinstance(found, Unknown)
    assert found.evidence == {"status": 201}


def test_no_client_is_imported() -> None:
    heavy = {"httpx", "httpx2", "httpcore2", "requests", "urllib3", "aiohttp"}
    code = (
        "import sys, ascertain.targets.classify as c; c.classify(OSError(1), None, True);"
        f"print(*sorted({heavy} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert loaded.stdout.split() == []
