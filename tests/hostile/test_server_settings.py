"""Whatever stands in the settings of a server and in the files that it reads: settings of the
declared kinds within their bounds, or a sentence. Nothing is left open because a word was wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import InvalidArgument
from omnigraph.policy.oidc import Issuer
from omnigraph.server.config import ServerConfig, read_config
from omnigraph.server.limits import ServerLimits
from omnigraph.server.logs import LogConfig
from tests.cli.world import Program
from tests.hostile.test_arguments import CODES

VALUES = (
    *("5", "-1", "0", "1.5", "true", "nan", "-nan", "inf", "1e400", "9" * 400, "2020-01-01"),
    *('"x"', '""', '"\\u0000"', '"../x"', '"~nosuch"', '"s3://"', '"none"', '"reader"'),
    *("[]", "{}", "[1]", '["a"]', '[""]', '["\\u0000"]', "[{}]", "[[1]]", "{a = 1}", "[" * 1000),
)
TABLES = {
    "": [one.name for one in fields(ServerConfig)] + ["auth", "policy", "web", "mcp", "nothing"],
    ".tls": ["cert", "key"],
    ".prefix": ["root", "create"],
    ".graphs": ["a", "A B"],
    ".auth": ["tokens", "anonymous", "oidc"],
    ".auth.oidc": [one.name for one in fields(Issuer)],
    ".auth.oidc.claims": ["actor", "wat"],
    ".policy": ["files", "groups"],
    ".limits": [one.name for one in fields(ServerLimits)],
    ".log": [one.name for one in fields(LogConfig)],
}
ISSUER = '[server.auth.oidc]\nissuer = "https://i"\naudience = "a"\n'
TEXTS = ("x", "", " ", "-1", "nan", "inf", "1e400", "9" * 400, "\udcff", "a,,b", "true")


def tries() -> Iterator[str]:
    for table, names in TABLES.items():
        for name in names:
            for value in VALUES:
                if table == ".auth.oidc":
                    kept = [line for line in ISSUER.splitlines() if not line.startswith(name)]
                    yield "\n".join([*kept, f"{name} = {value}"])
                else:
                    before = ISSUER if table == ".auth.oidc.claims" else ""
                    quoted = f'"{name}"'
                    yield f"{before}[server{table}]\n{quoted} = {value}"
    yield from ("server = 3", "[server.auth.oidc]", "[server.policy]", "[server.tls]", "[[server]]")


def read(path: Path, text: str, environment: dict[str, str]) -> ServerConfig | None:
    path.write_text(text)
    try:
        return read_config(path, environment, [f"g={path.parent}"])
    except InvalidArgument as error:
        assert error.message
        return None


def check(config: ServerConfig) -> None:
    """Of the kinds that are declared, and of what bounds something each bounds it."""
    for one in (config.limits, config.log):
        for name in (field.name for field in fields(one)):
            value = getattr(one, name)
            assert not isinstance(value, float) or (math.isfinite(value) and value >= 0), name
    for texts in (config.trusted_proxies, config.cors, config.sources, config.policies):
        assert all(isinstance(text, str) and text for text in texts)
    held: list[Any] = [config.prefix, config.tokens, config.groups, *config.graphs.values()]
    held += config.tls or ()
    if config.issuer is not None:
        held += [config.issuer.issuer, config.issuer.audience, *config.issuer.claims.values()]
    assert all(text is None or (isinstance(text, str) and text) for text in held)
    assert config.anonymous in (None, "reader")
    for truth in (config.create, config.behind_proxy, config.log.query_text):
        assert isinstance(truth, bool)
    assert config.loopback or config.guarded


def test_hostile_settings_of_a_server_are_taken_as_they_are_or_refused(tmp_path: Path) -> None:
    taken = 0
    for text in tries():
        found = read(tmp_path / "omnigraph.toml", text, {})
        if found is not None:
            taken += 1
            check(found)
    assert taken > 50


def test_hostile_variables_of_a_server_are_taken_as_they_are_or_refused(tmp_path: Path) -> None:
    names = [one.name for one in fields(ServerConfig)]
    names += [f"limits_{one.name}" for one in fields(ServerLimits)]
    names += [f"log_{one.name}" for one in fields(LogConfig)]
    for name in names:
        for text in TEXTS:
            environment = {f"OMNIGRAPH_SERVER_{name.upper()}": text}
            found = read(tmp_path / "omnigraph.toml", "", environment)
            if found is not None:
                check(found)


def test_a_variable_says_where_the_tokens_are(tmp_path: Path) -> None:
    """As `omnigraph token` reads it."""
    found = read(tmp_path / "omnigraph.toml", "", {"OMNIGRAPH_SERVER_TOKENS": "t.json"})
    assert found is not None
    assert (found.tokens, found.guarded) == ("t.json", True)


@pytest.mark.parametrize("text", ["[server.policy]\n", "[server.policy]\nfiles = []\n"])
def test_a_policy_without_files_is_refused(tmp_path: Path, text: str) -> None:
    """Else the roles of the credentials would hold, and nobody would know."""
    assert read(tmp_path / "omnigraph.toml", text, {}) is None
    policy = '[server.policy]\nfiles = ["p.cedar"]\n'
    assert read(tmp_path / "omnigraph.toml", policy, {}) is not None
    assert read(tmp_path / "omnigraph.toml", policy, {"OMNIGRAPH_SERVER_POLICIES": ""}) is None


ROW = (
    '{"tokens": [{"id": "abcdefghijkl", "actor": "ada", "sha256": "' + "0" * 64 + '", '
    '"roles": ["reader"], "expires": EXPIRES}]}'
)
TOKENS = [
    *("", "{", "[]", "null", '{"tokens": 3}', '{"tokens": [{}]}', "[" * 100_000, "\ufeff{}"),
    *(ROW.replace("EXPIRES", one) for one in ("-1", "1e400", "9" * 30, "-9" * 2, str(2**62))),
    *(ROW.replace("EXPIRES", "1").replace(old, new) for old, new in [("ada", "a/b"), ("0", "x")]),
    ROW.replace("EXPIRES", "1").replace("reader", "god"),
]
GROUPS = ["x", "x = 3", "x = [1]", "[" * 5000, "x = " + "[" * 5000, "\0", "a = ['b']\na = ['c']"]
POLICIES = ["", "permit", "permit(principal, action, resource);" * 500, "(" * 5000, "\0", "\ufeff"]
CASES = ["", "x", "[[case]]", "case = 3", '[[case]]\nactor = "a/b"\naction = "x"', "[" * 5000]


def files_and_words() -> Iterator[tuple[str, bytes, list[str]]]:
    foreign = b"\xff\xfe\x00"
    for text in TOKENS:
        yield "tokens.json", text.encode(), ["token", "list"]
        yield "tokens.json", text.encode(), ["token", "create", "eve", "--role", "reader"]
    yield "tokens.json", foreign, ["token", "revoke", "abcdefghijkl"]
    policy = ["policy", "check", "--policy", "p.cedar"]
    for text in GROUPS:
        yield "groups.toml", text.encode(), [*policy, "--groups", "groups.toml"]
    yield "groups.toml", foreign, [*policy, "--groups", "groups.toml"]
    for text in POLICIES:
        yield "p.cedar", text.encode(), policy
    yield "p.cedar", foreign, policy
    for text in CASES:
        yield "cases.toml", text.encode(), ["policy", "test", "cases.toml", *policy[2:]]
    yield "cases.toml", foreign, ["policy", "test", "cases.toml", *policy[2:]]


def test_hostile_files_of_tokens_and_policies_get_an_answer_or_a_sentence(
    pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = Program(environment={"OMNIGRAPH_ROOT": str(pristine)})
    tried = list(files_and_words())
    random.Random(17).shuffle(tried)
    for name, data, words in tried:
        (tmp_path / "p.cedar").write_text("permit(principal, action, resource);")
        place = tmp_path / name
        place.unlink(missing_ok=True)
        place.write_bytes(data)
        place.chmod(0o600)
        ran = program(words)
        assert ran.code in CODES, (data[:80], words, ran)
        for bad in ("Traceback", "bug", "panic"):
            assert bad not in ran.err.replace("--debug", ""), (data[:80], words, ran)
        if ran.code:
            assert ran.err.strip(), (data[:80], words, ran)


@pytest.mark.parametrize("lasts", ["9999999d", "999999999999999999999d", "1e400d", "-1d", "nan"])
def test_a_token_that_lasts_longer_than_any_calendar_is_refused(tmp_path: Path, lasts: str) -> None:
    path = str(tmp_path / "tokens.json")
    words = ["token", "create", "ada", "--role", "reader", "--expires", lasts, "--tokens", path]
    ran = Program()(words)
    assert (ran.code, "bug" in ran.err) == (2, False), ran
    assert not Path(path).exists()
