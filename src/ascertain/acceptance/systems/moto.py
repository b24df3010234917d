"""S3 by moto, a simulator: writes on a condition, as Amazon documents them."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from xml.etree import ElementTree as ET

from .base import Effect, System, mentions
from .web import answers, ask

BUCKET = "bucket-1"
# moto looks for whose request it is and checks no signature; without one it refuses to overwrite.
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=ak/20261129/us-east-1/s3/aws4_request,"
    " SignedHeaders=host, Signature=0"
)
VERSIONED = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
_TAG = re.compile(r"^\{[^}]*\}")


class Moto(System):
    """A versioned bucket in the memory of moto's server.

    A simulator: its behaviour is moto's reading of Amazon's documentation. ``If-None-Match: *``
    answers 412 where the object exists; four races of eight made one each. Starts in about 1 s.
    Measured with moto 5.2.5 on 2026-11-29.
    """

    name = "S3 simulator (moto)"
    modules = ("moto", "flask")
    install = "'moto[s3]' flask flask-cors"
    bucket_path = f"/{BUCKET}/"

    @property
    def authorization(self) -> str:
        """Value of the HTTP Authorization header; nobody checks its signature."""
        return AUTHORIZATION

    def effects(self, marker: str) -> list[Effect]:
        """Return the objects that exist now whose name or bytes mention the marker."""
        return [e for e, latest in self._versions(marker) if latest]

    def creations(self, marker: str) -> int:
        """Count the versions of objects, deleted and overwritten ones included."""
        return len(list(self._versions(marker)))

    def _versions(self, marker: str) -> Iterator[tuple[Effect, bool]]:
        match = mentions(marker)
        _, listed = self._ask("GET", f"/{BUCKET}?versions")
        for version in ET.fromstring(listed):  # noqa: S314 - our own server's answer
            if _TAG.sub("", version.tag) != "Version":
                continue
            told = {_TAG.sub("", part.tag): part.text or "" for part in version}
            where = f"/{BUCKET}/{told['Key']}?versionId={told['VersionId']}"
            _, content = self._ask("GET", where)
            if match(told["Key"]) or match(content.decode("utf-8", "replace")):
                moment = datetime.fromisoformat(told["LastModified"]).timestamp()
                latest = told["IsLatest"].lower() == "true"
                yield Effect(told["Key"], moment, f"version {told['VersionId']}"), latest

    def _command(self) -> Sequence[str]:
        server = ["-P", "-W", "ignore", "-m", "moto.server", "-H", self.host, "-p", str(self.port)]
        return [sys.executable, *server]

    def _answers(self) -> bool:
        return answers(self.port, "/moto-api/data.json")

    def _set_up(self) -> None:
        self._ask("PUT", f"/{BUCKET}")
        self._ask("PUT", f"/{BUCKET}?versioning", VERSIONED)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        return ask(self.port, method, path, body, headers={"Authorization": AUTHORIZATION})


def missing() -> str:
    """Say what is missing on this machine; nothing where it can be started."""
    lacking = [m for m in Moto.modules if importlib.util.find_spec(m) is None]
    return f"{', '.join(lacking)} (pip install {Moto.install})" if lacking else ""
