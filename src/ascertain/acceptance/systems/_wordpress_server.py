"""MariaDB and WordPress in one folder: made on the first start, then served until either ends.

Usage: ``python -P -B _wordpress_server.py HOME HOST PORT``. Of the standard library alone. Both
servers stay in the process group of whoever starts this file, so that they end with it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path("/usr/share/wordpress")
WORKERS = 8
DATABASE_SECONDS = 30.0
PLUGIN = """<?php // our key: a field of posts over REST, and a filter of their list
add_action('init', function () {
  register_post_meta('post', '_op_key', ['show_in_rest' => true, 'single' => true,
    'type' => 'string', 'auth_callback' => fn() => current_user_can('edit_posts')]);
});
add_filter('rest_post_query', function ($args, $request) {
  if ($key = $request->get_param('op_key')) {
    $args['meta_key'] = '_op_key';
    $args['meta_value'] = $key;
  }
  return $args;
}, 10, 2);
"""
CONFIG = """<?php
define('DB_NAME', 'wp'); define('DB_USER', 'wp'); define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:{socket}'); define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
{salts}
$table_prefix = 'wp_';
define('WP_ENVIRONMENT_TYPE', 'local'); // application passwords without TLS
define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_SITEURL', '{url}'); define('WP_HOME', '{url}');
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
INSTALL = """<?php
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = 'localhost';
require 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter('pre_wp_mail', '__return_false');
wp_install('demo', 'admin', 'admin@example.com', false, '', wp_generate_password(24));
update_option('permalink_structure', '');
$made = WP_Application_Passwords::create_new_application_password(1, ['name' => 'demo']);
file_put_contents($argv[1], $made[0]);
"""
SALTS: tuple[str, ...] = ("AUTH_KEY", "SECURE_AUTH_KEY", "LOGGED_IN_KEY", "NONCE_KEY")
SALTS += ("AUTH_SALT", "SECURE_AUTH_SALT", "LOGGED_IN_SALT", "NONCE_SALT")


def main() -> None:
    """Make what is missing, start both servers, and end with the first of them."""
    home, host, port = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    site, database, socket = home / "site", home / "db", home / "sock"
    # Debian keeps servers where not every user's PATH leads.
    os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if not (database / "mysql").is_dir():
        options = ["--skip-test-db", "--auth-root-authentication-method=normal"]
        run("mariadb-install-db", *ours(), f"--datadir={database}", *options)
    command = ["mariadbd", *ours(), *store_options(database, socket)]
    store = subprocess.Popen(command)
    try:
        until_answered(store, socket)
        if not (home / "password").is_file():
            make_site(home, site, f"http://{host}:{port}")
        environment = {**os.environ, "PHP_CLI_SERVER_WORKERS": str(WORKERS)}
        command = [*php(), "-S", f"{host}:{port}", "-t", str(site)]
        with subprocess.Popen(command, env=environment, cwd=site) as served:
            while served.poll() is None and store.poll() is None:
                time.sleep(0.05)
    finally:
        store.terminate()  # an orderly end; the guard kills whatever is left of the group
        store.wait()


def ours() -> list[str]:
    """Return the options of MariaDB's programs that keep this machine's own settings out."""
    return ["--no-defaults", *(["--user=root"] if os.geteuid() == 0 else [])]


def store_options(database: Path, socket: Path) -> Sequence[str]:
    """Return the server's options: a socket and no port, and a log that the auditor reads."""
    return (
        f"--datadir={database}",
        f"--socket={socket}",
        f"--pid-file={database / 'pid'}",
        "--skip-networking",
        "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=2",
        "--log-bin=changes",
        "--binlog-format=STATEMENT",
        "--max-binlog-size=1G",
    )


def until_answered(store: subprocess.Popen[bytes], socket: Path) -> None:
    """Wait until MariaDB answers; raises SystemExit if it does not."""
    until = time.monotonic() + DATABASE_SECONDS
    ping = ["mariadb-admin", "--no-defaults", "-uroot", "-S", str(socket), "ping"]
    while subprocess.run(ping, check=False, capture_output=True).returncode:
        if store.poll() is not None or time.monotonic() > until:
            raise SystemExit("MariaDB does not answer")
        time.sleep(0.03)


def make_site(home: Path, site: Path, url: str) -> None:
    """Make WordPress in a folder: its files, its database, its account's password."""
    statements = (
        "drop database if exists wp; create database wp;"
        " create user if not exists 'wp'@'localhost'; grant all on wp.* to 'wp'@'localhost'"
    )
    run("mariadb", "--no-defaults", "-uroot", "-S", str(home / "sock"), "-e", statements)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(site)
    shutil.copytree(SOURCE, site, ignore_dangling_symlinks=True)
    (site / ".htaccess").unlink(missing_ok=True)
    salts = "\n".join(f"define('{name}', '{secrets.token_hex(24)}');" for name in SALTS)
    config = CONFIG.format(socket=home / "sock", url=url, salts=salts)
    (site / "wp-config.php").write_text(config)
    plugins = site / "wp-content" / "mu-plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "op_key.php").write_text(PLUGIN)
    (home / "install.php").write_text(INSTALL)
    made = home / "password.new"
    # WordPress looks for wp-load.php on PHP's include path, beside the script or here.
    run(*php(), f"-dinclude_path={site}", str(home / "install.php"), str(made))
    made.rename(home / "password")


def php() -> list[str]:
    """Return PHP with its code cache on, which the workers share, and without a mailer."""
    flags = ("opcache.enable_cli=1", "sendmail_path=/bin/true", "display_errors=stderr")
    return ["php", *(f"-d{flag}" for flag in flags)]


def run(*command: str) -> None:
    """Run one step to its end; raises SystemExit if it fails, after its own words."""
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} ended with code {done.returncode}")


if __name__ == "__main__":
    main()
