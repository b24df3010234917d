"""WordPress beside the other systems: what it stores, what the demo shows, what it needs."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ascertain.acceptance import auditor, plain
from ascertain.acceptance.systems import WordPress, packages
from ascertain.cli.main import ascertain

MISSING = packages.missing()
needs_packages = pytest.mark.skipif(
    bool(MISSING), reason=f"WordPress not tested, missing packages: {', '.join(MISSING)}"
)


@pytest.fixture(scope="module")
def wordpress() -> Iterator[WordPress]:
    with tempfile.TemporaryDirectory(prefix="wp-") as made, WordPress(made) as system:
        yield system


def rest(wp: WordPress, method: str, path: str, body: object = None, **more: str) -> Any:
    headers = {"Authorization": wp.authorization, "Content-Type": "application/json"}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    sent = body if isinstance(body, bytes | None) else json.dumps(body)
    connection = http.client.HTTPConnection(wp.host, wp.port, timeout=10)
    connection.request(method, path, sent, headers)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def draft(wp: WordPress, key: str, title: str = "Offer") -> str:
    status, made = rest(
        wp, "POST", wp.posts_path, {"title": title, "status": "draft", "meta": {"_op_key": key}}
    )
    assert status == 201
    return str(made["id"])


def marker() -> str:
    return f"op-{uuid.uuid4().hex[:20]}"


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name, also under pytest-xdist."""
    with tempfile.TemporaryDirectory(prefix="wp-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@needs_packages
@pytest.mark.timeout(90)
def test_the_demo_with_wordpress(short: Path) -> None:
    command = [sys.executable, "-m", "ascertain.cli.main", "demo", "--once", "--json"]
    done = subprocess.run(
        [*command, "--wordpress"],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(short), "TMPDIR": str(short)},
    )
    told = json.loads(done.stdout)
    ours = [s for s in told["scenarios"] if s["target"] == "WordPress"]
    assert [s for s in told["scenarios"] if not s["ok"]] == [], done.stderr
    assert (done.returncode, told["duplicates"], told["lost"]) == (0, 0, 0)
    assert len(ours) == 4
    assert [s["class"] for s in ours] == ["searchable"] * 4
    assert [(s["effects"], s["blind_effects"]) for s in ours] == [(3, 5), (1, 2), (1, 2), (1, 8)]
    assert list(short.iterdir()) == [], "the throw-away folder is still there"
    running = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if alive(p)]
    assert not [line for line in running if str(short).encode() in line]


def alive(file: Path) -> bool:
    try:
        return bool(file.read_bytes())
    except OSError:
        return False


@needs_packages
@pytest.mark.timeout(90)
def test_a_draft_deleted_for_good_and_made_again_is_two(wordpress: WordPress) -> None:
    key = marker()
    first = draft(wordpress, key, 'It\'s "one" \\ two\nthree; (four), `five`')
    assert [e.id for e in wordpress.effects(key)] == [first]
    assert rest(wordpress, "DELETE", f"{wordpress.posts_path}/{first}")[0] == 200
    assert len(wordpress.effects(key)) == 1, "the trash counts"
    status, _ = rest(wordpress, "DELETE", f"{wordpress.posts_path}/{first}&force=true")
    assert (status, wordpress.effects(key), wordpress.creations(key)) == (200, [], 1)
    draft(wordpress, key)
    assert (len(wordpress.effects(key)), wordpress.creations(key)) == (1, 2)
    assert auditor.judge([auditor.Asked(wordpress, (key,))]).duplicates == 1


@needs_packages
@pytest.mark.timeout(90)
def test_a_changed_post_is_one_in_spite_of_its_revisions(wordpress: WordPress) -> None:
    key = marker()
    made = draft(wordpress, key)
    path = f"{wordpress.posts_path}/{made}"
    for text in ("once", "twice"):
        assert rest(wordpress, "POST", path, {"content": f"{text} {key}"})[0] == 200
    assert rest(wordpress, "POST", path, {"status": "publish"})[0] == 200
    assert (len(wordpress.effects(key)), wordpress.creations(key)) == (1, 1)


@needs_packages
@pytest.mark.timeout(90)
def test_the_contracts_look_up_sees_the_trash_and_exactly_the_key(wordpress: WordPress) -> None:
    key = marker()
    kept, trashed, other = draft(wordpress, key), draft(wordpress, key), draft(wordpress, key + "2")
    assert rest(wordpress, "DELETE", f"{wordpress.posts_path}/{trashed}")[0] == 200
    query = f"&status=any,trash&context=edit&op_key={key}"
    status, listed = rest(wordpress, "GET", wordpress.posts_path + query)
    assert status == 200
    assert {str(p["id"]) for p in listed} == {kept, trashed}
    assert other not in {str(p["id"]) for p in listed}


@needs_packages
@pytest.mark.timeout(90)
def test_an_answer_400_about_a_field_comes_after_the_post_was_made(wordpress: WordPress) -> None:
    key = marker()
    body = {"title": key, "status": "draft", "meta": {"_op_key": ["a list"]}}
    status, said = rest(wordpress, "POST", wordpress.posts_path, body)
    assert (status, said["code"]) == (400, "rest_invalid_type")
    assert wordpress.creations(key) == 1
    key = marker()
    body = {"title": key, "status": "no such state"}
    status, said = rest(wordpress, "POST", wordpress.posts_path, body)
    assert (status, said["code"]) == (400, "rest_invalid_param")
    assert wordpress.creations(key) == 0


@needs_packages
@pytest.mark.timeout(90)
def test_a_file_sent_twice_is_two_and_stays_so_when_it_is_deleted(wordpress: WordPress) -> None:
    key, name, stamped = marker(), marker(), plain.picture("Offer")
    headers = plain.media_headers(name)
    for _ in range(2):
        path = f"{wordpress.media_path}&description={key}"
        status, made = rest(wordpress, "POST", path, stamped, **headers)
        assert status == 201
    assert [f.read_bytes() for f in wordpress.files(name)] == [stamped, stamped]
    assert (wordpress.creations(key), wordpress.creations(name)) == (2, 2)
    path = f"{wordpress.media_path}/{made['id']}&force=true"
    assert rest(wordpress, "DELETE", path)[0] == 200
    assert (len(wordpress.files(name)), len(wordpress.effects(key))) == (1, 1)
    assert (wordpress.creations(key), wordpress.creations(name)) == (2, 2)
    (wordpress.files(name)[0].parent / f"{name}-9.png").write_bytes(b"")
    (wordpress.files(name)[0].parent / f"{name}-8.png").write_bytes(b"")
    assert wordpress.creations(name) == 3, "files without a row count"


@needs_packages
def test_the_database_has_no_port_and_no_other_user_reaches_it(wordpress: WordPress) -> None:
    assert wordpress.folder.stat().st_mode & 0o077 == 0
    assert wordpress._ask("select @@skip_networking, @@log_bin") == ["1\t1"]


# What it needs


@pytest.fixture
def nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing", lambda: ["wordpress", "php-mysql"])
    monkeypatch.setattr(packages, "may_install", lambda: False)


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "packages that are missing"), ("zh", "缺少软件包")]
)
def test_missing_packages_are_named_with_the_command(
    nothing_there: None, lang: str, words: str
) -> None:
    args = ["demo", "--once", "--wordpress", "--json", "--lang", lang]
    done = CliRunner().invoke(ascertain, args)
    assert done.exit_code == 4
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "packages_missing"
    for part in (words, "wordpress, php-mysql", packages.INSTALL):
        assert part in error["message"]


def test_what_is_missing_is_found_by_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    assert packages.missing() == packages.PACKAGES.split()
    assert not packages.may_install()


def test_root_installs_without_starting_a_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    apt, policy = tmp_path / "apt-get", tmp_path / "policy-rc.d"
    apt.write_text(f'#!/bin/sh\necho Setting up "$@"\n{policy}\necho policy $?\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(packages, "POLICY", policy)
    told: list[str] = []
    packages.install(told.append)
    assert told == [
        "apt-get update",
        "  Setting up update",
        packages.INSTALL,
        f"  Setting up {packages.INSTALL.removeprefix('apt-get ')}",
    ]
    assert not policy.exists()
    apt.write_text(f"#!/bin/sh\n{policy}\necho policy $?\nexit 100\n")
    with pytest.raises(packages.AptFailed, match=r"policy 101") as caught:
        packages.install(told.append)
    assert caught.value.command == "apt-get update"
    policy.write_text("the machine's own")
    with pytest.raises(packages.AptFailed):
        packages.install(told.append)
    assert policy.read_text() == "the machine's own"


def test_a_folder_too_deep_for_a_socket_is_said(tmp_path: Path) -> None:
    deep = WordPress(tmp_path / ("d" * 120))
    with pytest.raises(Exception, match="use a folder with a shorter path"):
        deep.start()
