"""What the command line says of the gateway, in English and Chinese, by code. Pure data."""

from __future__ import annotations

GATEWAY: dict[str, tuple[str, str]] = {
    "assume.callers_credentials": (
        "sent with its caller's own credentials: recovery cannot look up or replay without them",
        "使用调用者自己的凭据发送：没有这些凭据，自动核查无法查询或同键重发",
    ),
}
