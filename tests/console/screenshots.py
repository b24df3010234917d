"""Takes the pictures of the console, from things that really happen in a server on loopback.

make screenshots            # the ten main pages in both languages, into build/screenshots
make screenshots ARGS=docs  # and those of the README, smaller, into docs/pictures
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ascertain.console.app import attach
from ascertain.runtime.audit import Who
from console.browsing import chromium
from console.conftest import Browser, Office
from server.house import house
from server.signing import SECRET, shopify
from server.target import Shop, shop

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"  # those of the README

SIZES = {"desk": (1440, 900), "phone": (390, 844), "small": (1180, 900)}
WORDS = {
    "en": {"draft": "Draft of the {product}, {market}", "post": "Announce the {product}",
           "invoice": "Invoice for order {name}", "run": "Autumn campaign, EU", "product": "lamp",
           "first": "A warm lamp for cold evenings.\nFrom 49 euros.",
           "second": "A warm lamp for cold autumn evenings.\nFrom 45 euros.",
           "people": {"anna": "Anna Meier", "ben": "Ben Okafor"}},
    "zh": {"draft": "{product}草稿（{market}）", "post": "发布{product}推广",
           "invoice": "订单 {name} 的发票", "run": "秋季推广（欧洲）", "product": "暖光台灯",
           "first": "寒夜里的一盏暖灯。\n49 欧元起。",
           "second": "秋夜里的一盏暖灯。\n45 欧元起。",
           "people": {"anna": "陈安娜", "ben": "李本"}},
}  # fmt: skip
CONFIG = """
[[contract]]
id = "wordpress.draft"
title = "WordPress: posts"
ok = {{ when = "201" }}
key = {{ at = "body:key", kind = "content" }}
lookup = {{ call = "GET /orders?key={{key}}", by = "key", lag = "30s" }}
late = {{ max = "60s" }}
refused = {{ invalid = "422", throttled = "429", transient = "500" }}

[targets.WordPress]
base = "{url}"
open = "https://wordpress.example/wp-admin/post.php?action=edit&post={{ref}}"

[targets.Billing]
base = "{url}"

[actions."cms.create_draft"]
target = "WordPress"
contract = "wordpress.draft"
key = "{{product}}/{{market}}"
owner = "anna"
title = "{draft}"
inputs = {{ product = {{ type = "text" }}, market = {{ type = "text" }} }}
request.url = "/orders"
request.json = {{ name = "{{product}}/{{market}}", market = "{{market}}", key = "{{target_key}}" }}
lookup = {{ url = "/orders?key={{target_key}}", items = "orders", ref = "id", by = "key" }}
ref = "id"
first_delay = "100ms"

[actions."cms.import_draft"]
target = "WordPress"
key = "{{product}}/{{market}}"
owner = "anna"
title = "{draft}"
inputs = {{ product = {{ type = "text" }}, market = {{ type = "text" }} }}
request = {{ url = "/orders", json = {{ name = "{{product}}/{{market}}" }} }}
ref = "id"

[actions."social.post"]
target = "WordPress"
key = "{{product}}/v{{version}}"
owner = "ben"
approval = "editor"
title = "{post}"
request = {{ url = "/orders", json = {{ name = "{{product}}", text = "{{text}}" }} }}
ref = "id"
[actions."social.post".inputs]
product = {{ type = "text" }}
text = {{ type = "text" }}
version = {{ type = "integer" }}

[actions."billing.invoice"]
target = "Billing"
contract = "stripe.v2.post"
key = "{{name}}"
owner = "ben"
title = "{invoice}"
inputs = {{ name = {{ type = "text" }} }}
request.url = "/orders"
request.json = {{ name = "{{name}}" }}
request.headers = {{ Idempotency-Key = "{{target_key}}" }}
ref = "id"

[hooks.shop]
kind = "shopify"
secrets = [{{ env = "SECRET" }}]
[[hooks.shop.map]]
when = "topic == 'orders/paid'"
action = "billing.invoice"
input = {{ name = "body.name" }}
"""


@contextmanager
def office(lang: str) -> Iterator[tuple[Office, Browser]]:
    """A server in which a campaign was made, with answers that got lost."""
    words, folder = WORDS[lang], Path(tempfile.mkdtemp())
    os.environ["SECRET"] = SECRET
    with shop() as target:
        config = CONFIG.format(
            url=target.url, **{n: words[n] for n in ("draft", "post", "invoice")}
        )
        with house(folder, config, pages=attach) as home:
            home.__class__ = Office
            assert isinstance(home, Office)
            home.browsers = []
            yield home, happened(home, target, words, lang)
            for browser in home.browsers:
                browser.client.close()


def happened(home: Office, target: Shop, words: dict[str, Any], lang: str) -> Browser:
    """Let a campaign be made; return the person who looks at it."""
    anna = home.person("anna", lang=lang, overrides=1)
    ben = home.person("ben", lang=lang)
    people = home.serving.accounts.people
    for login, name in words["people"].items():
        account = people.by_login(login)
        assert account is not None
        zone = "Asia/Shanghai" if lang == "zh" else "Europe/Berlin"
        people.edit(account, name=name, lang=lang, zone=zone, who=Who(actor=login))
    campaign(home, target, words)
    announced(home, ben, words)
    paid(home)
    return anna


def campaign(home: Office, target: Shop, words: dict[str, Any]) -> None:
    """Ten drafts of one run: four answers are lost, and one draft was never asked for."""
    product, markets = words["product"], ("DE", "FR", "IT", "ES", "NL", "PL", "SE", "DK", "FI")
    expects = [{"action": "cms.import_draft", "key": f"{product}/{m}"} for m in (*markets, "PT")]
    home.client.post("/v1/runs", json={"name": words["run"], "expects": expects})
    target.fates[f"{product}/FR"] = ["drop"]
    target.fates[f"{product}/NL"] = ["hang"]
    for market in markets:
        home.submit("cms.import_draft", run=words["run"], product=product, market=market)
    target.fates[f"{product}/GB"] = ["drop"]  # found by looking
    home.submit("cms.create_draft", run=words["run"], product=product, market="GB")
    target.fates[f"{product}/IE"] = ["drop"]
    target.orders = ByHand()
    home.submit("cms.create_draft", run=words["run"], product=product, market="IE")


class ByHand(list[dict[str, Any]]):
    """What was made, where somebody has made one of it by hand too: a look-up finds two."""

    def append(self, order: dict[str, Any]) -> None:
        shown = {"product": order["name"].partition("/")[0], "market": order["name"][-2:]}
        super().append({**order, **shown, "id": 48212 + len(self)})
        if order["name"].endswith("/IE"):
            super().append({**order, **shown, "market": "UK", "id": 48212 + len(self)})


def in_review(home: Office) -> list[Any]:
    """What needs a person."""
    return home.serving.space("default").ledger.find(unsettled=True, waiting_on="review")


def announced(home: Office, ben: Browser, words: dict[str, Any]) -> None:
    """A text that was approved, and its next version, which waits."""
    home.submit("social.post", product=words["product"], text=words["first"], version=1)
    ask = re.search(r'action="(/approvals/[^"]+)"', ben.get("/approvals"))
    assert ask is not None
    ben.send(ask[1], do="approve", digest=ben.field("digest"), note="")
    home.submit("social.post", product=words["product"], text=words["first"], version=1)
    first = home.submit("social.post", product=words["product"], text=words["first"], version=1)
    home.client.post(
        "/v1/operations",
        json={"action": "social.post", "supersedes": first["id"], "reason": "autumn price",
              "input": {"product": words["product"], "text": words["second"], "version": 2}},
    )  # fmt: skip


def paid(home: Office) -> None:
    """Orders that were paid: their events come several times."""
    sender = home.as_token(None)
    for number, times in ((1001, 3), (1002, 1), (1003, 2)):
        data = json.dumps({"id": number, "name": f"#{number}"}).encode()
        for again in range(times):
            headers = shopify(data, f"evt-{number}", f"d-{number}-{again}")
            sender.post("/hooks/shop", content=data, headers=headers)
    data = json.dumps({"id": 1004, "name": "#1004"}).encode()
    sender.post(
        "/hooks/shop", content=data, headers=shopify(data, "evt-1004", topic="orders/edited")
    )
    home.serving.space("default").ledger.recover()


def pages(home: Office) -> dict[str, str]:
    """The ten main pages, by the name of their picture."""
    ledger = home.serving.space("default").ledger
    reviews = {r.operation: r.id for r in ledger.reviews()}
    [one] = [op for op in in_review(home) if op.action == "cms.create_draft"]
    run = home.client.get("/v1/runs").json()["items"][0]["id"]
    return {
        "review": f"/review/{reviews[one.id]}",
        "operation": f"/op/{ledger.find(action='cms.create_draft')[0].id}",
        "operations": "/operations",
        "run": f"/runs/{run}",
        "approvals": "/approvals",
        "events": "/events",
        "dashboard": "/dashboard?period=24h",
        "targets": "/targets",
        "audit": "/audit",
        "people": "/people",
    }


def take(folder: Path, lang: str, theme: str, size: str, only: tuple[str, ...] = ()) -> None:
    """Write a picture of every page."""
    folder.mkdir(parents=True, exist_ok=True)
    width, height = SIZES[size]
    with office(lang) as (home, anna), chromium() as made:
        context = made.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme,
            locale={"en": "en-GB", "zh": "zh-CN"}[lang],
        )  # fmt: skip
        name = home.serving.site.cookie
        value = anna.client.cookies.get(name)
        context.add_cookies([{"name": name, "value": value, "url": home.url}])
        page = context.new_page()
        more = "" if theme == "light" and size != "phone" else f"-{theme}-{size}"
        for name, path in {"start": "/", "settings": "/settings", **pages(home)}.items():
            if only and name not in only:
                continue
            page.goto(home.url + path)
            if name == "review" and page.query_selector("#a-there"):
                page.check("#a-there")
            page.screenshot(path=folder / f"{name}-{lang}{more}.png", full_page=not only)
        context.close()


def main(args: list[str]) -> None:
    """Take them all; with `docs` those of the README too."""
    for lang in WORDS:
        take(ROOT / "build" / "screenshots", lang, "light", "desk")
    if "docs" in args:
        for lang, only in (("en", ("review", "dashboard")), ("zh", ("review",))):
            take(PICTURES, lang, "light", "small", only)
        for picture in PICTURES.glob("*.png"):
            smaller(picture)


def smaller(picture: Path) -> None:
    """Reduce a picture to 256 colours, a third of its size, where Pillow is installed."""
    if importlib.util.find_spec("PIL") is None:
        return
    image = importlib.import_module("PIL.Image")
    image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
