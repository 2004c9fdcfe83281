"""The doors of the storage layer, checked in the code itself: who may touch what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "src" / "omnigraph"
STORE = PACKAGE / "store"
ENGINES = ("lance", "obstore", "pylance")

# Methods of a dataset that commit by themselves, attached, or that do not know our versions.
COMMITTING = frozenset(
    {
        "add_bases",
        "add_columns",
        "add_columns_with_udf",
        "alter_columns",
        "checkout_latest",
        "cleanup_old_versions",
        "cleanup_with_policy",
        "commit_batch",
        "commit_existing_index_segments",
        "commit_transaction",
        "compact_files",
        "create_branch",
        "create_index",
        "create_scalar_index",
        "delete_config_keys",
        "drop_columns",
        "drop_index",
        "execute_with_reader",
        "merge_insert",
        "optimize_indices",
        "prewarm_index",
        "replace_field_metadata",
        "replace_schema_metadata",
        "restore",
        "shallow_clone",
        "truncate_table",
        "update_config",
        "update_field_metadata",
        "update_metadata",
        "update_schema_metadata",
    }
)
# The same of methods that sets, dicts and tasks of a compaction have too.
COMMITTING_ON_A_HANDLE = frozenset({"delete", "execute", "insert", "merge", "update", "validate"})


# Of what `store` uses, the methods of a handle for whose time Lance lets nobody else use it.
BORROWING = frozenset({"create_index_uncommitted", "merge_existing_index_segments", "tags"})


SCRATCH = ("text_search.py", "build_scratch")
"""Makes indexes in memory, which no graph has."""


def modules(base: Path = PACKAGE) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(base.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"), str(path))


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"


def imported(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Modules that are imported, also under another name or by a string."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, node) for alias in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name, node
            case ast.Call(func=ast.Name("__import__") | ast.Attribute(attr="import_module")):
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield argument.value, node


def outside_touches(path: Path, tree: ast.Module) -> list[str]:
    found = [place(path, node) for name, node in imported(tree) if name.split(".", 1)[0] in ENGINES]
    # A handle of Lance may not be reached through ours.
    return found + [
        place(path, node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("handle", "_ds", "_lance")
    ]


def forbidden_commits(path: Path, tree: ast.Module) -> list[str]:
    """Everything in `store` that could make an attached commit after creation."""
    found: list[str] = []
    for function, node in calls(tree):
        if (path.name, function) == SCRATCH:
            continue  # in memory only
        name = ast.unparse(node.func)
        method = name.rsplit(".", 1)[-1]
        options = {k.arg: k.value for k in node.keywords}
        if method == "write_dataset" and (path.name, function) != ("open_tables.py", "create"):
            found.append(place(path, node))
        if name.endswith("LanceDataset.commit"):
            detached = options.get("detached")
            if not (isinstance(detached, ast.Constant) and detached.value is True):
                found.append(place(path, node))
            if (path.name, function) != ("commits.py", "commit_operation"):
                found.append(place(path, node))
        if method == "Transaction" and "read_version" not in options:
            found.append(place(path, node))
        if method in COMMITTING:
            found.append(place(path, node))
        if method in COMMITTING_ON_A_HANDLE and _of_lance(node.func):
            found.append(place(path, node))
    return found


def _of_lance(function: ast.expr) -> bool:
    text = ast.unparse(function)
    return any(word in text for word in ("handle", "fragment.", "_ds", "dataset", "lance"))


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Calls with the name of the function that they stand in."""

    def below(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef) else function
            if isinstance(child, ast.Call):
                yield inner, child
            yield from below(child, inner)

    yield from below(tree, "")


def unexplained_touches(path: Path, tree: ast.Module) -> list[str]:
    """Where a handle of Lance is used and what it throws would come out as it is."""
    found = []

    def look(node: ast.AST, explained: bool) -> None:
        if isinstance(node, ast.Attribute) and node.attr == "handle" and not explained:
            found.append(place(path, node))
        if isinstance(node, ast.With):
            told = [ast.unparse(item.context_expr) for item in node.items]
            explained = explained or any(
                text.startswith(("explained(", "reading(")) for text in told
            )
        for child in ast.iter_child_nodes(node):
            # What is only defined here runs when somebody else calls it.
            look(child, explained and not isinstance(child, ast.FunctionDef))

    look(tree, explained=False)
    return found


def shared_borrows(path: Path, tree: ast.Module) -> list[str]:
    """Where Lance would borrow for itself a handle that others use."""
    found = []
    for node in ast.walk(tree):
        borrows = isinstance(node, ast.Attribute) and node.attr in BORROWING
        if borrows and ast.unparse(node).rsplit(".", 1)[0] != "own":
            found.append(place(path, node))
    return found


def version_puts(path: Path, tree: ast.Module) -> list[tuple[str, str]]:
    """Where graph versions are put: `.put(` on the chains of versions."""
    return [
        (str(path.relative_to(PACKAGE)), function)
        for function, node in calls(tree)
        if (name := ast.unparse(node.func)).endswith(".put") and "versions" in name.lower()
    ]


def test_nothing_outside_the_store_touches_lance_or_the_object_store() -> None:
    found = [
        where
        for path, tree in modules()
        if STORE not in path.parents
        for where in outside_touches(path, tree)
    ]
    assert found == []


def test_nothing_makes_an_attached_commit_after_creation() -> None:
    found = [where for path, tree in modules(STORE) for where in forbidden_commits(path, tree)]
    assert found == []


def test_whatever_lance_throws_is_explained() -> None:
    found = [where for path, tree in modules(STORE) for where in unexplained_touches(path, tree)]
    assert found == []


def test_no_handle_that_is_shared_is_borrowed_by_lance() -> None:
    found = [where for path, tree in modules(STORE) for where in shared_borrows(path, tree)]
    assert found == []


def test_graph_versions_are_put_in_one_place() -> None:
    found = {where for path, tree in modules() for where in version_puts(path, tree)}
    assert found == {("engine/write/chain.py", "put_version")}


def test_no_plain_put_may_name_a_key_that_decides() -> None:
    """Replacing is for what has its content as its name, for tickets in the queue, for intents
    and jobs that are refreshed by their one owner while they run, for what is derived, and for
    asking a store its time."""
    found = {
        (path.name, function)
        for path, tree in modules()
        for function, node in calls(tree)
        if ast.unparse(node.func).endswith("objects.put")
    }
    assert found == {
        ("content.py", "write_content"),
        ("job_files.py", "write_request"),
        ("job_files.py", "write_run"),
        ("job_files.py", "ask_cancel"),
        ("queue.py", "_show"),
        ("intents.py", "write_intent"),
        ("file_checksums.py", "write_digests"),
        ("store_time.py", "read_store_time"),
    }


BROKEN_OUTSIDE = [
    "import lance",
    "from lance.fragment import write_fragments",
    "import obstore as o",
    "def f():\n    import importlib\n    importlib.import_module('lance')",
    "__import__('obstore')",
    "def f(table):\n    return table.handle.to_table()",
    "def f(view):\n    return view.table.handle",
]
BROKEN_STORE = [
    "LanceDataset.commit(ds, operation, read_version=1)",
    "LanceDataset.commit(ds, operation, read_version=1, detached=False)",
    "LanceDataset.commit(ds, operation, read_version=1, detached=flag)",
    "lance.LanceDataset.commit(ds, operation, detached=True)",
    "lance.write_dataset(rows, uri, mode='append')",
    "self.handle.merge_insert('id').execute(rows)",
    "table.handle.delete('id = 1')",
    "table.handle.update({'a': '1'})",
    "handle.add_columns({'a': '1'})",
    "table.handle.optimize.compact_files()",
    "table.handle.cleanup_old_versions()",
    "table.handle.restore()",
    "table.handle.create_scalar_index('id', 'BTREE')",
    "table.handle.optimize.optimize_indices()",
    "table.handle.drop_columns(['a'])",
    "dataset.insert(rows)",
]


@pytest.mark.parametrize("code", BROKEN_OUTSIDE)
def test_the_guard_sees_code_that_reaches_around_the_store(code: str) -> None:
    assert outside_touches(PACKAGE / "engine" / "x.py", ast.parse(code))


@pytest.mark.parametrize("code", BROKEN_STORE)
def test_the_guard_sees_an_attached_commit(code: str) -> None:
    assert forbidden_commits(STORE / "commits.py", ast.parse(code))
    assert forbidden_commits(STORE / "tables.py", ast.parse(f"def f():\n    {code}"))


@pytest.mark.parametrize(
    "code",
    [
        "def f(table):\n    return table.handle.version",
        "def f(t):\n    with explained(x):\n        def g():\n            t.handle.to_table()",
    ],
)
def test_the_guard_sees_what_is_not_explained(code: str) -> None:
    assert unexplained_touches(STORE / "x.py", ast.parse(code))


def test_the_guard_sees_a_handle_that_is_borrowed() -> None:
    assert shared_borrows(STORE / "x.py", ast.parse("table.handle.tags.list()"))


def test_the_guard_sees_a_put_of_a_version() -> None:
    tree = ast.parse("def sneak():\n    session.versions(ledger).put(version)")
    assert version_puts(PACKAGE / "engine" / "x.py", tree) == [("engine/x.py", "sneak")]


def test_scratch_indexes_are_in_memory_alone() -> None:
    """The function may write a dataset and build an index, so it may name no other place."""
    module, function = SCRATCH
    tree = ast.parse((STORE / module).read_text("utf-8"))
    (found,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    text = ast.unparse(found)
    assert text.count("write_dataset") == 1
    assert "f'memory://{_SCRATCH}'" in text
