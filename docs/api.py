"""The API reference, from the OpenAPI document that the server itself gives; in both languages.

What a route does is its docstring; what it means in Chinese stands in `api_zh.py`, one sentence
for each route. A route without one is shown in English there, and a test says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from api_zh import ROUTES as ZH
from api_zh import TAGS as ZH_TAGS

from ascertain.server.app import build, describe
from ascertain.server.messages import COMMON
from ascertain.server.problems import STATUS, WORDS

DOCS = Path(__file__).parent
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
TEXTS: dict[str, tuple[str, str]] = {
    "head": (
        """# HTTP API

Generated from the routes by `docs/generate.py`; do not edit. The server gives the same as OpenAPI
at `/v1/openapi.json`. [中文](zh/api.md)

Every request carries a token, `Authorization: Bearer asc_…` (made with `ascertain token new`), or a
person's session; each is of one namespace and sees nothing of another. Bodies are JSON in UTF-8
with no field that is not described; times are ISO 8601 with a time zone, in answers in UTC. Lists
are `{"items": […], "next": …}`: pass `next` as `after` until it is null; a page may hold fewer
than asked for, or none, and there may still be more.

What stands in the way is a problem (RFC 9457, `application/problem+json`): its `type` is
`urn:ascertain:problem:` with a stable `code` from the table below, `next_step` says what happens
now and who does it, `link` where a person sees it, and `user_message` is safe to show to an end
user. **What is not resolved is an error status**, so that a tool that knows only success and
failure stops; `on_unresolved: "accept"` answers 202 instead.

A first operation, of an action `order` that `ascertain.toml` declares; sent again it answers the
same, with `"reused": true`, and nothing is done:

```sh
curl "$ASCERTAIN/v1/operations" -H "Authorization: Bearer $TOKEN" \\
  -H "Content-Type: application/json" -d '{"action": "order", "input": {"name": "A-1"}}'
```
""",
        """# HTTP API

本页由 `docs/generate.py` 根据代码生成，请勿修改。服务器在 `/v1/openapi.json` 提供同样内容的 OpenAPI 文档。[English](../api.md)

每个请求都要带令牌 `Authorization: Bearer asc_…`（用 `ascertain token new` 生成）或某人的会话；二者各属于一个空间，看不到其他空间的任何内容。请求正文为 UTF-8 JSON，不接受未说明的字段；时间为带时区的 ISO 8601，答复中一律为 UTC。列表形如 `{"items": […], "next": …}`：把 `next` 作为 `after` 传回，直到它为 null；一页的条数可能少于请求的条数，甚至为空，而后面仍有内容。

出现障碍时返回 problem（RFC 9457，`application/problem+json`）：`type` 为 `urn:ascertain:problem:` 加下表中稳定的 `code`；`next_step` 说明接下来发生什么、由谁处理，`link` 是供人查看的地址，`user_message` 可以直接显示给最终用户。**尚未查实的一律以错误状态码返回**，让只认成功与失败的工具停下；传 `on_unresolved: "accept"` 则改为返回 202。

第一项业务操作（`order` 是 `ascertain.toml` 中声明的动作）；再发一次得到同样的答复，`"reused": true`，不会再执行：

```sh
curl "$ASCERTAIN/v1/operations" -H "Authorization: Bearer $TOKEN" \\
  -H "Content-Type: application/json" -d '{"action": "order", "input": {"name": "A-1"}}'
```
""",
    ),
    "routes": ("Routes", "接口"),
    "parameters": ("| parameter | in | type | |", "| 参数 | 位置 | 类型 | |"),
    "takes": ("Takes", "正文"),
    "answers": ("Answers", "答复"),
    "also": (
        "Any route that asks for a token may answer {codes} as well.",
        "需要令牌的接口还可能返回 {codes}。",
    ),
    "required": ("required", "必填"),
    "default": ("default", "默认"),
    "anybody": ("No token is needed.", "无需令牌。"),
    "rights": ("Needs the right {rights}.", "需要权限 {rights}。"),
    "problem": ("problem", "problem"),
    "nothing": ("nothing", "无正文"),
    "problems": ("Problems", "problem 一览"),
    "problem_head": ("| code | status | |", "| code | 状态码 | |"),
    "shapes": ("Shapes", "数据结构"),
    "shapes_about": (
        "In the order of the alphabet. `?` marks what may be left out.",
        "按字母顺序排列。`?` 表示可以省略。",
    ),
    "field": ("| field | type | |", "| 字段 | 类型 | |"),
}


def pages() -> dict[Path, str]:
    """Return both pages with their text."""
    app = build(SimpleNamespace())  # type: ignore[arg-type]  # nothing is served
    document, rights = describe(app), _rights(app)
    return {
        DOCS / "api.md": "\n".join(_page(document, rights, 0)),
        DOCS / "zh" / "api.md": "\n".join(_page(document, rights, 1)),
    }


def untranslated() -> list[str]:
    """Name the routes that have no sentence in Chinese, and the sentences that have no route."""
    document = describe(build(SimpleNamespace()))  # type: ignore[arg-type]
    there = {name for name, _, _ in _routes(document)}
    return sorted(there ^ set(ZH))


def _rights(app: Any) -> dict[str, str]:
    """Return the rights that each route asks for, by its name in the page."""
    found: dict[str, str] = {}

    def walk(routes: Any) -> None:
        for route in routes:
            if inner := getattr(route, "routes", None) or getattr(
                getattr(route, "original_router", None), "routes", None
            ):
                walk(inner)
            for one in getattr(getattr(route, "dependant", None), "dependencies", ()):
                names = sorted(getattr(one.call, "rights", ()))
                for method in route.methods or () if names else ():
                    found[_name(method, route.path)] = ", ".join(f"`{n}`" for n in names)

    walk(app.routes)
    return found


def _name(method: str, path: str) -> str:
    """Name a route; how much of a path a part takes is not the reader's."""
    return f"{method.upper()} {re.sub(r':[a-z]+}', '}', path)}"


def _routes(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Give every route: its name, its tag, and what the document says."""
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield _name(method, path), methods[method]["tags"][0], methods[method]


def _page(document: dict[str, Any], rights: dict[str, str], lang: int) -> Iterator[str]:
    def tell(code: str, **values: str) -> str:
        return TEXTS[code][lang].format(**values) if values else TEXTS[code][lang]

    yield tell("head")
    yield tell("also", codes=", ".join(map(str, sorted(COMMON))))
    yield ""
    tags: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for name, tag, said in _routes(document):
        tags.setdefault(tag, []).append((name, said))
    for tag, routes in tags.items():
        yield f"## {ZH_TAGS.get(tag, tag) if lang else tag.capitalize()}"
        yield ""
        for name, said in routes:
            yield from _route(name, said, rights.get(name, ""), lang)
    yield f"## {tell('problems')}"
    yield ""
    yield tell("problem_head")
    yield "|---|---|---|"
    for code in sorted(WORDS):
        yield f"| `{code}` | {STATUS.get(code, 409)} | {WORDS[code][lang]} |"
    yield ""
    yield f"## {tell('shapes')}"
    yield ""
    yield tell("shapes_about")
    yield ""
    for name, shape in sorted(document["components"]["schemas"].items()):
        yield from _shape(name, shape, lang)


def _route(name: str, said: dict[str, Any], rights: str, lang: int) -> Iterator[str]:
    yield f"### `{name}`"
    yield ""
    english = said.get("description", "")
    yield ZH.get(name, english) if lang else english
    yield ""
    if said.get("security") == []:
        yield TEXTS["anybody"][lang] + "\n"
    elif rights:
        yield TEXTS["rights"][lang].format(rights=rights) + "\n"
    if given := said.get("parameters"):
        yield TEXTS["parameters"][lang]
        yield "|---|---|---|---|"
        for one in given:
            yield f"| `{one['name']}` | {one['in']} | {_type(one['schema'])} | {_more(one, lang)} |"
        yield ""
    if body := said.get("requestBody"):
        shapes = [_type(media["schema"]) for media in body["content"].values()]
        yield f"{TEXTS['takes'][lang]}: {', '.join(shapes)}\n"
    yield f"{TEXTS['answers'][lang]}: {', '.join(_answers(said['responses'], lang))}"
    yield ""


def _answers(responses: dict[str, Any], lang: int) -> Iterator[str]:
    for status, one in sorted(responses.items()):
        content = one.get("content", {})
        media, found = next(iter(content.items()), ("", {}))
        if media == "application/problem+json":
            if int(status) not in COMMON:
                yield f"{status} {TEXTS['problem'][lang]}"
        elif media == "application/json":
            yield f"{status} {_type(found['schema'])}"
        else:
            yield f"{status} {f'`{media}`' if media else TEXTS['nothing'][lang]}"


def _more(one: dict[str, Any], lang: int) -> str:
    said = [TEXTS["required"][lang]] if one.get("required") else []
    default = one["schema"].get("default")
    if default not in (None, ""):
        said.append(f"{TEXTS['default'][lang]} `{_json(default)}`")
    said += [one.get("description", "")]
    return "; ".join(filter(None, said))


def _shape(name: str, shape: dict[str, Any], lang: int) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    if shape.get("description"):
        yield shape["description"]
        yield ""
    if "enum" in shape:
        yield _type({"enum": [one for one in shape["enum"] if one != ""]}).replace("\\|", "|")
        yield ""
    if not shape.get("properties"):
        return
    needed = set(shape.get("required", ()))
    yield TEXTS["field"][lang]
    yield "|---|---|---|"
    for field, of in shape["properties"].items():
        mark = "" if field in needed else "?"
        yield f"| `{field}`{mark} | {_type(of)} | {of.get('description', '')} |"
    yield ""


def _type(schema: Any) -> str:
    """Say a type in a few words."""
    if not isinstance(schema, dict):  # `true`: anything
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        several = [_type(one) for one in schema["anyOf"] if one.get("type") != "null"]
        null = len(several) < len(schema["anyOf"])
        return " or ".join(several) + (" or null" if null else "")
    if "enum" in schema:
        return " \\| ".join(f"`{_json(one)}`" for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}" + _bounds(schema, "Items")
    if kind == "object":
        of = schema.get("additionalProperties")
        return f"object of {_type(of)}" if isinstance(of, dict) and of else "object"
    form = schema.get("format")
    return {"date-time": "time"}.get(form or "", kind) + _bounds(schema, "Length")


def _bounds(schema: dict[str, Any], of: str) -> str:
    low = schema.get("minimum", schema.get(f"min{of}"))
    high = schema.get("maximum", schema.get(f"max{of}"))
    if low is None and high is None:
        return ""
    return f" ({'' if low is None else f'{low:g}'}–{'' if high is None else f'{high:g}'})"


def _json(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(
        value, bool) else str(value)  # fmt: skip
