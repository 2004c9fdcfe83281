"""Owns the manifest: a graph version as rows, for people and programs to inspect."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from omnigraph.model.version import GraphVersion

SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string()),
        pa.field("table_version", pa.int64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.int64()),
    ]
)


def manifest_rows(version: GraphVersion) -> pa.Table:
    rows: list[dict[str, object]] = []
    for pin in version.tables:
        rows.append(
            {
                "object_id": pin.key,
                "object_type": "table",
                "location": pin.location,
                "metadata": msgspec.json.encode({"type_id": pin.type_id}).decode(),
                "table_key": pin.key,
            }
        )
        details = {"lance_version": pin.lance_version, "fragments": pin.fragments}
        rows.append(
            {
                "object_id": f"{pin.key}${pin.table_version}",
                "object_type": "table_version",
                "location": pin.location,
                "metadata": msgspec.json.encode(details).decode(),
                "base_objects": [pin.key],
                "table_key": pin.key,
                "table_version": pin.table_version,
                "table_branch": version.branch,
                "row_count": pin.rows,
            }
        )
    rows.append(
        {
            "object_id": version.commit.id,
            "object_type": "graph_commit",
            "metadata": msgspec.json.encode(version.commit).decode(),
            "base_objects": list(version.commit.parents),
            "table_branch": version.branch,
        }
    )
    head = {"version": version.version, "incarnation": version.incarnation}
    rows.append(
        {
            "object_id": f"{version.branch}${version.version}",
            "object_type": "graph_head",
            "metadata": msgspec.json.encode(head).decode(),
            "base_objects": [version.commit.id],
            "table_branch": version.branch,
        }
    )
    return pa.Table.from_pylist(rows, schema=SCHEMA)
