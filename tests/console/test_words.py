"""Every text of the pages exists in Chinese, and none is left over."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from ascertain.console.details import DETAILS, in_chinese
from ascertain.console.did import told
from ascertain.console.glyphs import PILLS
from ascertain.console.reader import Reader, catalogue, preferred, reader_of

# Not by sys.path: docs/ has modules whose names are those of folders here.
_FILE = Path(__file__).parents[2] / "docs" / "catalogue.py"
_SPEC = importlib.util.spec_from_file_location("catalogue", _FILE)
_words = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_words)
translated, used = _words.translated, _words.used

HOUR = 3_600_000_000
MOMENT = 1_764_460_800_000_000  # 2025-11-30T00:00:00Z


def test_every_text_is_translated_and_none_is_left_over() -> None:
    assert used() == set(translated())


@pytest.mark.parametrize("english", sorted(translated()))
def test_a_translation_has_the_same_values_and_is_chinese(english: str) -> None:
    chinese = translated()[english]
    values = [sorted(re.findall(r"%\((\w+)\)s", text)) for text in (english, chinese)]
    assert values[0] == values[1]
    assert chinese % dict.fromkeys(values[1], "1")  # a bare percent sign would end the page
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert "！" not in chinese
    assert not re.search(r"[\u4e00-\u9fff][A-Za-z]|[A-Za-z][\u4e00-\u9fff]", chinese)


def test_the_compiled_catalogue_is_read() -> None:
    assert catalogue("zh").gettext("Sign in") == "登录"
    assert catalogue("en").gettext("Sign in") == "Sign in"


def test_every_glyph_is_drawn_and_has_its_words() -> None:
    folder = Path(__file__).parents[2] / "src" / "ascertain" / "console" / "templates"
    drawn = set(re.findall(r'id="i-(\w+)"', (folder / "icons.html").read_text("utf-8")))
    assert set(PILLS) <= drawn
    assert all(english and chinese for english, chinese in PILLS.values())


@pytest.mark.parametrize(
    ("did", "text", "english", "chinese"),
    [
        ("review.decide", "there: done 17", "it is there: done #17", "已存在：已完成 #17"),
        (
            "operation.renew", "not_done/unauthorized, waits on authorization",
            "not done, not authorized, waits for an authorization",
            "未执行、未获授权、待恢复授权",
        ),
        ("review.take", "not taken", "not taken", "未接手"),
        (
            "review.snooze", f"taken by ben, put off until {MOMENT}",
            "taken by ben, put off until 30 Nov 2025, 00:00",
            "由 ben 接手，暂缓至 2025 年 11 月 30 日 00:00",
        ),
        ("target.pause", "paused", "paused", "已暂停"),
        ("bulk.plan", "look_up: 3 of 5", "ask the target: 3 of 5", "查询目标系统: 3 / 5"),
        ("bulk.end", "done 3, refused 1", "carried out 3, was not possible 1",
         "已处理 3, 无法处理 1"),
        ("member.set", "admin decides", "may administer, decides reviews", "可管理、可判断核查"),
        ("event.process", "failed", "needs a fix", "需修正"),
        ("person.edit", "done", "done", "done"),  # a name
        ("operation.repeat", "operation 0abc", "operation 0abc", "operation 0abc"),
    ],
)  # fmt: skip
def test_what_an_audit_line_changed_is_said_in_words(
    did: str, text: str, english: str, chinese: str
) -> None:
    assert told(did, text, Reader(lang="en")) == english
    assert told(did, text, Reader(lang="zh")) == chinese


@pytest.mark.parametrize(
    ("header", "lang"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("de, en;q=0.7, zh;q=0.3", "en"),
        ("fr", "en"),
        ("zh;q=0", "en"),
        ("en;q=nonsense, zh;q=0.1", "zh"),
    ],
)
def test_a_browser_says_which_language_it_prefers(header: str, lang: str) -> None:
    assert preferred(header) == lang


def test_a_cookie_comes_before_the_account_and_the_browser() -> None:
    assert reader_of({"lang": "zh"}, "en", lang="en").lang == "zh"
    assert reader_of({"lang": "xx"}, "zh", lang="en").lang == "en"
    assert reader_of({}, "zh").lang == "zh"
    assert reader_of({"theme": "dark"}, "").theme == "dark"
    assert reader_of({"theme": "x"}, "").theme == "system"


@pytest.mark.parametrize(
    ("lang", "at", "shown"),
    [
        ("en", MOMENT, "08:00:00"),
        ("zh", MOMENT, "08:00:00"),
        ("en", MOMENT - 24 * HOUR, "29 Nov 2025, 08:00"),
        ("zh", MOMENT - 24 * HOUR, "2025 年 11 月 29 日 08:00"),
    ],
)
def test_times_are_shown_in_the_readers_zone(lang: str, at: int, shown: str) -> None:
    who = Reader(lang=lang, zone="Asia/Shanghai")
    assert who.time(at, MOMENT) == shown
    assert who.zone_name(MOMENT) == "Asia/Shanghai (UTC+8)"
    assert Reader(zone="no/such").iso(MOMENT) == "2025-11-30T00:00:00+00:00"


@pytest.mark.parametrize(
    ("span", "english", "chinese"),
    [
        (0, "0 s", "0 秒"),
        (59_000_000, "59 s", "59 秒"),
        (3 * HOUR + 61_000_000, "3 h 1 min", "3 小时 1 分"),
        (26 * HOUR, "1 d 2 h", "1 天 2 小时"),
        (24 * HOUR + 5_000_000, "1 d", "1 天"),
    ],
)
def test_durations_are_shown_in_words(span: int, english: str, chinese: str) -> None:
    assert Reader(lang="en").age(span) == english
    assert Reader(lang="zh").age(span) == chinese


# Where messages come from that a form or an event meets.
_SAYERS = (
    *("console/forms", "console/person", "console/views/approvals", "console/views/audit"),
    *("console/views/bulk", "console/views/operation", "console/views/people"),
    *("console/views/runs", "console/views/events", "console/views/start"),
    *("console/views/reviews", "console/views/targets", "runtime/reviewing", "runtime/deciding"),
    *("runtime/approving", "runtime/people", "runtime/tokens", "runtime/bulk", "runtime/links"),
    *("core/people", "runtime/gates", "runtime/mapping", "runtime/intake", "core/intake"),
    *("runtime/action", "core/keys"),
)
_ERRORS = re.compile(r"\w*(Error|Refused|Conflict|NotAllowed|Failed|NotAnEvent|UnknownAction)")
# Nobody meets these in a form: they are of a declaration, of code, or of the API alone.
_NO_FORM = re.compile(
    r"operation 1: 1(; look again)?$|name the person who decides|a role is one of"
    r"|name the namespace, or|'1' is never|bulk action 1 (cannot be run: 1$|is 1: there)"
    r"|an expression has|'1' is no (JMESPath|place)"
    r"|(key|1|action 1: (1$|it is sent|its)|its key function|unknown input)"
)


def messages() -> set[str]:
    """What the errors of these modules say; in place of each value stands a 1."""
    found: set[str] = set()
    source = Path(__file__).parents[2] / "src" / "ascertain"
    for name in _SAYERS:
        for node in ast.walk(ast.parse((source / f"{name}.py").read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if not _ERRORS.fullmatch(node.func.id):
                continue
            for said in node.args:
                if isinstance(said, ast.JoinedStr):
                    parts = [
                        str(part.value) if isinstance(part, ast.Constant)
                        else "'1'" if part.conversion == ord("r") else "1"
                        for part in said.values
                        if isinstance(part, ast.Constant | ast.FormattedValue)
                    ]  # fmt: skip
                    found.add("".join(parts))
                elif isinstance(said, ast.Constant) and " " in str(said.value):
                    found.add(str(said.value))
    return found


def test_what_an_error_says_in_a_form_is_said_in_chinese() -> None:
    said = messages()
    assert len(said) > 70
    left = {one for one in said if not in_chinese(one) and not _NO_FORM.match(one)}
    assert left == set()


def test_every_chinese_detail_is_of_a_message() -> None:
    whole = messages() | {
        "name the role that consents (1)", "give the reason for the risk",
        "something newer is known; look again",
        "something newer is known: 1 said '1', and it is done now; look again",
        "bulk action 1 cannot be run: its plan is older than 15 minutes: plan it again",
        "action a: unknown input x. It takes b", "action a: missing input x. It takes b",
        "action a: unknown input y; missing input x. It takes b",
    }  # fmt: skip
    bare = whole | {one.removeprefix("operation 1: ") for one in whole}
    for pattern, chinese in DETAILS:
        assert any(re.fullmatch(pattern, one) for one in bare), pattern
        assert re.search("[\u4e00-\u9fff]", chinese)


def test_a_message_about_an_operation_names_it_in_chinese() -> None:
    said = "operation lamp/v1: this review is closed; look at the operation"
    assert in_chinese(said) == "操作“lamp/v1”：此项核查已结束：请查看对应的操作。"
    assert in_chinese("something else") == in_chinese("operation x: something else") == ""
