"""What an assumption about a target means, in words: everything that a receipt may print."""

from __future__ import annotations

from ascertain.core.contract import Terms
from ascertain.core.words import LANGUAGES
from ascertain.runtime.receipt import assumptions

from .reader import Reader

# By its name; {span} is its value. What is not named here is a claim of the contract.
MEANINGS: dict[str, tuple[str, str]] = {
    "late": (
        "a request takes effect at most {span} after the time for sending is over",
        "发送时限结束后，请求最晚在 {span}内生效",
    ),
    "lag": (
        "what took effect is found at most {span} later",
        "生效后最晚 {span}内可以查到",
    ),
    "keeps": (
        "the target remembers our key for {span}",
        "目标系统在 {span}内记住我们的键",
    ),
    "sends_within": (
        "its own code stops sending at most {span} after it began",
        "执行代码开始后最晚 {span}内停止发送",
    ),
    "sends_by_call": (
        "its code sends by call.http alone, whose deadline we hold",
        "执行代码只经 call.http 发送，其时限由我们控制",
    ),
    "reversible": (
        "the effect can be undone",
        "结果可以撤销",
    ),
    "settle": (
        "the disk may be behind when an outcome is told",
        "告知结果时可能尚未写入磁盘",
    ),
    "callers_credentials": (
        "callers send their own credentials, which may stop working",
        "由调用方提供凭据，凭据可能失效",
    ),
    "deterministic": (
        "its own code sends the same request every time",
        "执行代码每次发送的请求都相同",
    ),
    "single_request": (
        "its own code sends one request and no more",
        "执行代码只发送一个请求",
    ),
    "nobody_deletes": (
        "nobody deletes it at the target meanwhile",
        "期间没有人在目标系统中删除它",
    ),
}
CLAIM = (
    "a claim of the contract that nobody saw in the vendor’s words: {name}",
    "保护约定中未经厂商原文证实的一项：{name}",
)


def assumed(terms: Terms, reader: Reader) -> list[str]:
    """Return every assumption of an action in words, in the order of the receipt."""
    place, found = LANGUAGES.index(reader.lang), []
    for printed in assumptions(terms):
        name = printed.partition("=")[0]
        value = getattr(terms, name, None)
        known = isinstance(value, int) and not isinstance(value, bool)
        span = reader.span(int(value)) if known and value is not None else ""
        text = MEANINGS.get(name, CLAIM)[place]
        found.append(text.format(span=span, name=name))
    return found
