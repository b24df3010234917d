"""Drafts and media in WordPress, with `--wordpress`: the same look-up on a system that all know."""

from __future__ import annotations

import base64
import json
from functools import partial

from ascertain.acceptance import plain
from ascertain.acceptance.auditor import Checks

from . import roundup
from .base import TEXT, WITHIN, Ending, Scenario, Stage


def media_answer_lost(stage: Stage) -> Ending:
    """A file is uploaded and the answer lost; it is found by its stamp, byte for byte."""
    stage.set("media", timeout=3.0, late=1.0)
    blind = stage.aside(stage.blind_twice("media", "drop_response", "POST"))
    stage.proxies["media"].drop_response("POST")
    ledger, actions = stage.open()
    receipt = actions["media"](case=stage.mark(), text=TEXT, wait=WITHIN)
    checks = Checks()
    checks.that(receipt.confirmed_by == "look_up", "it was not found by look-up")
    checks.that(stage.sent("media") == 1, "it was sent again")
    [frozen] = ledger.store.requests(receipt.id)
    sent = base64.b64decode(json.loads(frozen.request)["body"])
    system = stage.systems.of("media")
    assert stage.systems.wordpress is system
    stored = [file.read_bytes() for file in stage.systems.wordpress.files(stage.mark())]
    checks.that(stored == [sent], "the file on disk is not the one that was frozen")
    checks.that(sent == plain.picture(f"{TEXT} {stage.mark()}"), "other bytes were frozen")
    words = {
        "en": f"The file was found by its stamp as {receipt.ref} and not sent again; on disk lie"
        f" exactly the {len(sent)} bytes that were frozen.",
        "zh": f"按标记查到该文件，编号 {receipt.ref}，未再发送；磁盘上正是已冻结的"
        f" {len(sent)} 字节。",
    }
    return Ending([receipt], blind.result(), checks, evidence=words)


ALL = [
    Scenario(
        "wp-batch",
        {
            "en": "drafts: A done, B's answer lost, C not executed; run again",
            "zh": "草稿批次：A 已完成，B 回执丢失，C 未执行；重新运行",
        },
        "WordPress",
        partial(roundup.batch, what="post"),
        6,
    ),
    Scenario(
        "wp-media",
        {"en": "media file uploaded, answer lost", "zh": "媒体文件已上传，回执丢失"},
        "WordPress",
        media_answer_lost,
        5,
    ),
    Scenario(
        "wp-killed",
        {"en": "draft: caller killed after the effect", "zh": "草稿：执行后、回执前调用方被杀"},
        "WordPress",
        partial(roundup.killed_before_receipt, what="post"),
        5,
    ),
    Scenario(
        "wp-eight",
        {"en": "draft: eight callers at once", "zh": "草稿：八个调用方同时提交"},
        "WordPress",
        partial(roundup.eight_at_once, what="post"),
        4,
    ),
]
