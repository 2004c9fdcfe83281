"""What file managers leave in folders is nobody's: it changes nothing, and nothing changes it."""

from __future__ import annotations

from pathlib import Path

import omnigraph
from tests.bench.aging import age
from tests.cli.world import Program
from tests.hostile.damage import READS, SETTINGS, build_graph


def test_a_stray_file_anywhere_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    build_graph(root)
    with omnigraph.open(root, settings=SETTINGS) as g:
        g.verify(deep=True)  # so that there are checksums too
        right = {name: read(g) for name, read in READS.items()}
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    folders += [root / "__manifest" / "mine", root / "__history" / "mine"]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        (folder / ".DS_Store").write_bytes(b"\0\xff junk")
    age(root, 90 * 24 * 3600)
    with omnigraph.open(root, settings=SETTINGS) as g:
        assert {name: read(g) for name, read in READS.items()} == right
        assert g.verify(deep=True).ok
        assert not [f for f in g.verify().findings if ".DS_Store" in f.object + f.message]
        g.optimize()
        taken = g.cleanup(keep=1, older_than=0).removed
        assert not [one.key for one in taken if ".DS_Store" in one.key]
        g.create_branch("mine")
        g.mutate('insert Note { text: "x" }')
    omnigraph.copy(root, tmp_path / "copy", settings=SETTINGS)
    assert not list((tmp_path / "copy").rglob(".DS_Store"))
    assert all((folder / ".DS_Store").exists() for folder in folders)


def test_verify_advises_no_cleanup_while_something_is_unreadable(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    build_graph(root)
    heads = sorted((root / "__manifest" / "main").glob("*.json"))
    with omnigraph.open(root, settings=SETTINGS) as g:
        (location,) = {pin.location for pin in g.snapshot().graph_version.tables[:1]}
    (root / location / "data" / "old.lance").write_bytes(b"left over")
    assert "cleanup takes them" in told(root)
    held = heads[1].read_bytes()
    heads[1].write_bytes(held[:50])
    assert "cleanup" not in told(root)
    heads[1].write_bytes(held)
    damaged = next(path for path in (root / location / "_versions").glob("d*"))
    damaged.write_bytes(damaged.read_bytes()[:20])
    assert "cleanup" not in told(root)


def told(root: Path) -> str:
    ran = Program()(["--root", str(root), "verify"])
    return ran.out + ran.err
