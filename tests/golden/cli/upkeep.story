# Checking, cleaning, copying and recovering a graph.
@file people.pg
// Who is who in the story of upkeep and of copies, told with sizes that sit on no edge at all here.
node Person {
    name: String @key
    age: I32?
}
@end
$ omnigraph init g --schema people.pg
Created g with 1 node type and 0 edge types.

@set OMNIGRAPH_ROOT g
@python
for n in range(5):
    with g.transaction() as tx:
        tx.append("Person", [{"name": f"person {n}", "age": n}])
g.create_tag("v1", "main~1")
@end
$ omnigraph verify
Looked at 7 versions, 6 table versions, 29 files: all sound.

$ omnigraph cleanup --keep 1 --older-than 0s --dry-run
There is nothing to clean.

# Nothing younger than an hour is touched; two hours pass.
@python
import os, pathlib
for path in pathlib.Path("g").rglob("*"):
    held = path.stat()
    os.utime(path, (held.st_atime, held.st_mtime - 7200))
@end
$ omnigraph cleanup --keep 1 --older-than 0s --dry-run
Would delete 4 files (n.n KB): old version.
Would delete 7 files (n.n KB): unreferenced.
main can be read from version 6 on.

$ omnigraph cleanup --keep 1 --older-than 0s
! error: Cleanup deletes 11 files (n.n KB) for good.
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph cleanup --keep 1 --older-than 0s --yes
Deleted 4 files (n.n KB): old version.
Deleted 7 files (n.n KB): unreferenced.
main can be read from version 6 on.

$ omnigraph cleanup --keep 1 --older-than 0s --yes --json
{
  "dry_run": false,
  "files": 0,
  "bytes": 0,
  "by_reason": {},
  "floors": {},
  "spared": [],
  "removed": []
}

$ omnigraph log --limit 3
id-01-xxxxxxxxxxxxxxxxxxxx (main)
  2026-01-01 12:02:00, write: Person +1
id-02-xxxxxxxxxxxxxxxxxxxx (tag: v1)
  2026-01-01 12:02:00, write: Person +1
id-03-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:02:00, write: Person +1
! 1 commit of maintenance not shown (--maintenance)

$ omnigraph entity Person 'person 0' --ref v1
id    "person 0"
name  "person 0"
age   0

$ omnigraph entity Person 'person 0' --ref main~3
! error: Version 4 of 'main' was reclaimed.
! help: Cleanup removed this version; only newer ones can be read.
[exit 3]

$ omnigraph verify --deep
Looked at 3 versions, 2 table versions, 21 files, 5 rows: all sound.

$ omnigraph copy backup
Copied 1 branch, 1 tag, 3 versions in 14 files (n.n KB) to backup.

$ omnigraph copy backup
! error: There is a graph at /here/backup already.
! help: Choose another root, or use the graph that is there.
[exit 4]

$ omnigraph verify --root backup
Looked at 3 versions, 2 table versions, 20 files: all sound.

$ omnigraph delete backup --dry-run
Would delete /here/backup, 20 files (n.n KB).

$ omnigraph delete backup
! error: /here/backup goes for good, 20 files (n.n KB).
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph delete backup --yes
Deleted /here/backup, 20 files (n.n KB).

$ omnigraph delete backup --yes
! error: There is no graph at /here/backup.
! help: Create one with 'omnigraph init ROOT --schema FILE', or check the path.
[exit 3]

$ omnigraph delete people.pg --yes
! error: There is no graph at /here/people.pg.
! help: Create one with 'omnigraph init ROOT --schema FILE', or check the path.
[exit 3]

$ omnigraph upgrade --check
The graph has format 2, which is the newest.

$ omnigraph upgrade
The graph has format 2, which is the newest.

$ omnigraph recover list
Nothing is under way.

@python
g.recovery.begin("load", actor="ann", branch="main")
pathlib_ = __import__("pathlib")
broken = pathlib_.Path("g/__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json")
broken.write_text("{")
@end
$ omnigraph recover list --json
[
  {"id": "id-04-xxxxxxxxxxxxxxxxxxxx", "kind": null, "actor": null, "branch": null, "state": "Input data was truncated", "resumable": false, "silent_for": 0},
  {"id": "id-05-xxxxxxxxxxxxxxxxxxxx", "kind": "load", "actor": "ann", "branch": "main", "state": "under way", "resumable": false, "silent_for": 60}
]

$ omnigraph recover list
id-04-xxxxxxxxxxxxxxxxxxxx
  cannot be read, and is left alone: Input data was truncated
id-05-xxxxxxxxxxxxxxxxxxxx
  load by ann on main: under way, last heard of 2 minutes ago

$ omnigraph verify
The intent id-04-xxxxxxxxxxxxxxxxxxxx cannot be read (Input data was truncated); cleanup waits.
Looked at 3 versions, 2 table versions, 24 files: all sound.

$ omnigraph recover resume 01ARZ3NDEKTSV4RRFFQ69G5FAV
! error: The intent id-04-xxxxxxxxxxxxxxxxxxxx cannot be read: Input data was truncated.
! help: Look at __recovery/id-04-xxxxxxxxxxxxxxxxxxxx.json; delete the file if it is of no use.
[exit 1]

$ omnigraph recover discard 01ARZ3NDEKTSV4RRFFQ69G5FAX
! error: There is no operation id-06-xxxxxxxxxxxxxxxxxxxx: it has ended, or never was.
! help: List them with 'omnigraph recover list'.
[exit 3]

$ omnigraph recover discard id-05-xxxxxxxxxxxxxxxxxxxx
Discarded id-05-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph recover list more
! error: There are too many arguments: more.
! help: See 'omnigraph recover list --help'.
[exit 2]

$ omnigraph recover resume me
! error: 'me' is not the id of an operation.
! help: List them with 'omnigraph recover list'.
[exit 2]

@python
from omnigraph.plan.publish import Lineage, PublishPlan
head = g.snapshot().graph_version
lineage = Lineage(kind="load", operation="01ARZ3NDEKTSV4RRFFQ69G5FAY", actor="ann")
plan = PublishPlan(
    branch="main", base_version=head.version, base_incarnation=1, actions=(), lineage=lineage
)
g.recovery.beat(g.recovery.begin("load", actor="ann", branch="main", base=head), plan=plan)
@end
$ omnigraph recover list --format csv
id,kind,actor,branch,state,resumable,silent_for
id-04-xxxxxxxxxxxxxxxxxxxx,,,,Input data was truncated,false,0
id-07-xxxxxxxxxxxxxxxxxxxx,load,ann,main,under way,true,60

$ omnigraph recover resume id-07-xxxxxxxxxxxxxxxxxxxx
Resumed id-07-xxxxxxxxxxxxxxxxxxxx in commit id-08-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph log --limit 2
id-08-xxxxxxxxxxxxxxxxxxxx (main) resumed load of ann
  omnigraph:recovery, 2026-01-01 12:36:00, load
id-01-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:02:00, write: Person +1
! 2 commits of maintenance not shown (--maintenance)

$ omnigraph cleanup --keep 0 --yes
! error: keep=0: a branch keeps at least its newest version.
[exit 2]

$ omnigraph upgrade now
! error: There are too many arguments: now.
! help: See 'omnigraph upgrade --help'.
[exit 2]

# A file is lost.
@python
import pathlib
for path in pathlib.Path("g/_schema").glob("*.pg"):
    path.unlink()
@end
$ omnigraph verify
schema  The schema text _schema/609c9fd42221f295b57d178b2b5760ff8a8fe83df6f1f0cfc38808fc68d62358.pg is missing.
The intent id-04-xxxxxxxxxxxxxxxxxxxx cannot be read (Input data was truncated); cleanup waits.
Looked at 5 versions, 2 table versions, 24 files: 1 wrong.
[exit 1]

$ omnigraph verify --json
{
  "ok": false,
  "deep": false,
  "looked_at": {
    "files": 24,
    "history": 5,
    "schemas": 1,
    "tables": 2,
    "versions": 5
  },
  "findings": [
    {
      "kind": "schema",
      "severity": "error",
      "object": "_schema/609c9fd42221f295b57d178b2b5760ff8a8fe83df6f1f0cfc38808fc68d62358.pg",
      "message": "The schema text _schema/609c9fd42221f295b57d178b2b5760ff8a8fe83df6f1f0cfc38808fc68d62358.pg is missing."
    },
    {
      "kind": "intent",
      "severity": "note",
      "object": "__recovery/id-04-xxxxxxxxxxxxxxxxxxxx.json",
      "message": "The intent id-04-xxxxxxxxxxxxxxxxxxxx cannot be read (Input data was truncated); cleanup waits."
    }
  ]
}
[exit 1]
