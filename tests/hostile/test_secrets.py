"""Secrets stay where they are: nothing that is shown, or that a user can pickle, holds any."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.spool import Spool
from omnigraph.errors import Invalid, OmnigraphError
from omnigraph.policy.credentials import BearerCredentials
from omnigraph.policy.oidc import Issuer, Oidc
from omnigraph.policy.tokens import Tokens, create_token
from omnigraph.settings import Settings
from omnigraph.spark.pinned import PinnedTable, root_options
from omnigraph.spark.stream.batches import BatchWriter
from omnigraph.store.open_tables import Tables
from omnigraph.store.remote import RemoteStore
from omnigraph.store.roots import Root, parse_root

SECRET = "hunter2hunter2"


@pytest.fixture
def root() -> Root:
    environment = {
        "AWS_ACCESS_KEY_ID": "ada",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": SECRET,
        "AWS_ENDPOINT_URL_S3": "https://localhost:1",
    }
    found = parse_root("s3://bucket/graph", environment)
    assert SECRET in found.options.values()
    return found


def writer(root: Root) -> BatchWriter:
    session: Any = SimpleNamespace(root=root, settings=Settings(), held={})
    return BatchWriter(session, LoadOptions(), "orders", mapping=None, local=True)


def test_nothing_that_is_shown_holds_a_secret(root: Root) -> None:
    spool = Spool(root, "__spool/x", Settings())
    pinned = PinnedTable(
        root=root.uri,
        table="node:A",
        location="x",
        version="1",
        catalog=b"",
        options=root_options(root),
    )
    store = RemoteStore(root.uri, root.options, timeout=1.0)
    for value in (
        root,
        spool,
        pinned,
        store,
        Tables(root),
        writer(root),
        Settings(),
        LoadOptions(),
    ):
        for text in (repr(value), str(value), f"{value}"):
            assert SECRET not in text


def test_a_writer_of_streams_travels_without_the_credentials_of_its_process(root: Root) -> None:
    data = pickle.dumps(writer(root))
    assert SECRET.encode() not in data
    assert b"s3://bucket/graph" in data
    again = pickle.loads(data)
    assert pickle.dumps(again) == data


def test_an_open_graph_shows_and_pickles_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with omnigraph.init(tmp_path / "graph", schema="node A { n: I32? }\n") as g:
        held = [g, g.branch("main"), g.snapshot(), g.query("match { $a: A } return { $a.n }")]
        for value in held:
            assert SECRET not in repr(value)
            try:
                data = pickle.dumps(value)
            except Exception:  # noqa: BLE001  what cannot be pickled holds nothing
                continue
            assert SECRET.encode() not in data


def test_what_knows_tokens_shows_and_pickles_none(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    made = create_token(path, "ada", roles=["reader"])
    tokens = Tokens.read(path)
    caller = BearerCredentials(tokens).caller_of(f"Bearer {made.text}")
    issuer = Oidc(Issuer("https://issuer", "graph"))
    secret = made.text.rsplit("_", 1)[1]
    for value in (made, made.row, tokens, caller, issuer, BearerCredentials(tokens, issuer)):
        for text in (repr(value), str(value), f"{value}"):
            assert secret not in text
    for value in (made.row, caller):
        assert secret.encode() not in pickle.dumps(value)
    assert secret not in path.read_text()
    with pytest.raises(OmnigraphError) as told:
        BearerCredentials(tokens).caller_of(f"Bearer {made.text}x")
    for text in (str(told.value), repr(told.value), str(told.value.to_dict())):
        assert secret not in text


@pytest.mark.parametrize(
    "address",
    [
        f"http://ada:{SECRET}@host/x",
        f"https://ada:p@{SECRET}@host/x",
        f"s3://:{SECRET}@bucket",
        f"see HTTPS://a:{SECRET}@h and http://b:{SECRET}@i",
    ],
)
def test_no_error_shows_a_password_wherever_it_stands(address: str) -> None:
    error: OmnigraphError = Invalid(f"No: {address}.", help=f"Try {address}.", where=address)
    for shown in (str(error), repr(error), str(error.to_dict()), str(error.args)):
        assert SECRET not in shown
    again = pickle.dumps(error) if type(error) is Invalid else b""
    assert SECRET.encode() not in again
