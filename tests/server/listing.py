"""Every route of the application, found in the application itself, with the rights it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from fastapi.routing import APIRoute

from ascertain.core.rights import Right


class Listed(NamedTuple):
    """One route under one method. `rights`: one of these is asked for; None: no caller is."""

    method: str
    path: str
    rights: frozenset[Right] | None
    route: Any

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def params(self) -> list[str]:
        return re.findall(r"\{(\w+)(?::\w+)?\}", self.path)


def listed(app: Any) -> list[Listed]:
    """Every route, those of included routers too; whatever is no API route is listed as GET."""
    found = []
    for route in _flat(app.routes):
        if not isinstance(route, APIRoute):
            found.append(Listed("GET", getattr(route, "path", ""), None, route))
            continue
        asked = [call.rights for call in _calls(route.dependant) if hasattr(call, "rights")]
        assert len(asked) <= 1, (route.path, "asks for its caller twice")
        rights = asked[0] if asked else None
        found += [Listed(method, route.path, rights, route) for method in sorted(route.methods)]
    return found


def _flat(routes: Any) -> Iterator[Any]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            assert not route.include_context.prefix, "give the prefix to the router itself"
            yield from _flat(inner.routes)
        else:
            yield route


def _calls(dependant: Any) -> Iterator[Any]:
    for one in dependant.dependencies:
        yield one.call
        yield from _calls(one)
