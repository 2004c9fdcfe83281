"""A token names its actor, until it ends or is revoked; the file holds no secret that works."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from omnigraph.errors import AlreadyExists, InvalidArgument, NotFound, Unauthenticated
from omnigraph.model.caller import Caller
from omnigraph.policy.credentials import BearerCredentials
from omnigraph.policy.tokens import Tokens, create_token, read_tokens, revoke_token
from tests.unit.engine.clock import Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def test_a_token_names_its_actor_with_roles_and_graphs(path: Path) -> None:
    made = create_token(path, "ada", roles=["writer"], groups=["staff"], graphs=["papers"])
    caller = BearerCredentials(Tokens.read(path)).caller_of(f"Bearer {made.text}")
    wanted = Caller(
        "ada", frozenset({"staff"}), frozenset({"writer"}), frozenset({"papers"}), made.row.id
    )
    assert caller == wanted


def test_the_file_has_the_hash_and_nobody_else_may_read_it(path: Path) -> None:
    made = create_token(path, "ada", roles=["reader"])
    secret = made.text.rsplit("_", 1)[-1]
    assert secret not in path.read_text()
    assert made.row.sha256 in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(made.text) == len("ogt_") + 12 + 1 + 43


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_reach_is_refused(path: Path, mode: int) -> None:
    create_token(path, "ada", roles=["reader"])
    path.chmod(mode)
    with pytest.raises(InvalidArgument, match="chmod 600"):
        read_tokens(path)


def test_two_tokens_of_one_actor_count_until_one_is_revoked(path: Path) -> None:
    old, new = (create_token(path, "ada", roles=["reader"]) for _ in range(2))
    both = Tokens.read(path)
    assert both.caller_of(old.text).actor == both.caller_of(new.text).actor == "ada"
    revoke_token(path, old.row.id)
    left = Tokens.read(path)
    assert left.caller_of(new.text).token == new.row.id
    with pytest.raises(Unauthenticated):
        left.caller_of(old.text)
    with pytest.raises(NotFound):
        revoke_token(path, old.row.id)


def test_a_token_ends(path: Path) -> None:
    clock = Clock()
    made = create_token(path, "ada", roles=["reader"], lasts=60, runtime=clock)
    tokens = Tokens.read(path, clock)
    assert tokens.caller_of(made.text).actor == "ada"
    clock.skip(61)
    with pytest.raises(Unauthenticated):
        tokens.caller_of(made.text)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"),
        lambda t: t + "A",
        lambda t: t.upper(),
        lambda t: "ogt_" + "a" * 12 + t[16:],
        lambda t: t.replace("ogt_", "ogx_"),
        lambda t: t + "\n",
    ],
)
def test_a_token_that_is_not_quite_right_names_nobody(path: Path, change: object) -> None:
    made = create_token(path, "ada", roles=["reader"])
    assert callable(change)
    with pytest.raises(Unauthenticated) as error:
        Tokens.read(path).caller_of(change(made.text))
    assert "ada" not in str(error.value)
    assert made.row.id not in str(error.value)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic YTpi", "Bearer é", "Bearer a b"])
def test_a_header_without_a_token_names_nobody(path: Path, header: str | None) -> None:
    create_token(path, "ada", roles=["reader"])
    with pytest.raises(Unauthenticated):
        BearerCredentials(Tokens.read(path)).caller_of(header)


def test_a_wrong_token_is_not_taken_for_none(path: Path) -> None:
    create_token(path, "ada", roles=["reader"])
    open_to_all = BearerCredentials(Tokens.read(path), anonymous="reader")
    assert open_to_all.caller_of(None).roles == {"reader"}
    with pytest.raises(Unauthenticated):
        open_to_all.caller_of("Bearer ogt_" + "a" * 12 + "_" + "b" * 43)


@pytest.mark.parametrize("actor", ["", " ", "a/b", "a\nb", "x" * 2000])
def test_an_actor_is_a_plain_name(path: Path, actor: str) -> None:
    with pytest.raises(InvalidArgument):
        create_token(path, actor, roles=["reader"])
    with pytest.raises(InvalidArgument):
        create_token(path, "ada", roles=["king"])
    with pytest.raises(InvalidArgument):
        create_token(path, "ada", roles=[])


@pytest.mark.parametrize("change", [{"more": 1}, {"sha256": "x"}, {"actor": "a/b"}, {"roles": "r"}])
def test_a_file_with_something_else_in_it_is_refused(path: Path, change: dict[str, object]) -> None:
    create_token(path, "ada", roles=["reader"])
    held = json.loads(path.read_text())
    held["tokens"][0] |= change
    path.write_text(json.dumps(held))
    with pytest.raises(InvalidArgument):
        read_tokens(path)


def test_who_changes_the_file_at_the_same_time_is_told(path: Path) -> None:
    create_token(path, "ada", roles=["reader"])
    path.with_name("tokens.json.lock").touch()
    with pytest.raises(AlreadyExists):
        create_token(path, "bob", roles=["reader"])
    assert len(read_tokens(path)) == 1
