"""One layer retries: whatever goes wrong, `call.http` sends exactly one request (law 17)."""

from __future__ import annotations

from typing import Any

import pytest

from targets.serving import CREATED, Server, answer, both, client, shop

FATES: dict[str, Any] = {
    "read timeout": Server.silent,
    "reset": Server.resets,
    "closed without an answer": Server.hangs_up,
    "503": answer("503 Service Unavailable", Retry_After="0"),
    "429": answer("429 Too Many Requests", Retry_After="0"),
    "408": answer("408 Request Timeout"),
    "425": answer("425 Too Early"),
    "421": answer("421 Misdirected Request"),
    "401 with a challenge": answer("401 Unauthorized", WWW_Authenticate='Digest realm="x"'),
    "301": answer("301 Moved Permanently", Location="/other"),
    "303": answer("303 See Other", Location="/other"),
    "307": answer("307 Temporary Redirect", Location="/other"),
    "308": answer("308 Permanent Redirect", Location="/other"),
    "half an answer": b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{",
    "no HTTP at all": b"\x00\x01\x02 nothing that anybody knows\r\n\r\n",
}


@pytest.mark.parametrize("twin", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("fate", FATES)
def test_exactly_one_request_is_sent(fate: str, method: str, twin: bool) -> None:
    said = FATES[fate]
    script = said if isinstance(said, bytes) else lambda conn: said(server, conn)
    with Server(script, CREATED) as server:
        http = both(client(within=0.2, contract=shop()), twin)
        with pytest.raises(Exception, match=r".*"):
            http.request(method, server.url, json={"n": 1})
    assert len(server.requests) == 1
    assert server.connections == 1
