# Branches, tags, protection, undoing, and the change feed.
@file people.pg
node Person {
    name: String @key
    age: I32?
    bio: String?
}
edge Knows: Person -> Person {
    since: Date?
}
@end
@file answers.jsonl
{"type": "Person", "id": "Ada", "data": {"age": 50}}
@end
$ omnigraph init g --schema people.pg --as ada
Created g with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT g
@set OMNIGRAPH_ACTOR ada
@python
with g.transaction(actor="ada", message="people") as tx:
    tx.append("Person", [{"name": n} for n in ("Ada", "Bob", "Eve", "Joe")])
@end
$ omnigraph branch create review --from main
Created review from main at commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph branch delete review --dry-run
Everything in review is in main.

$ omnigraph merge review
main has everything that review has.

@python
with g.branch("review").transaction(actor="bob", message="ages") as tx:
    tx.upsert("Person", [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 40}])
    tx.append("Knows", {"src": "Ada", "dst": "Bob"})
@end
$ omnigraph merge review --dry-run
Would bring main forward to review (no commits of its own):
  Person  ~2
  Knows   +1

$ omnigraph branch delete review
! error: 1 commit of review is not in main.
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph branch delete review --dry-run --json
{
  "branch": "review",
  "unmerged_commits": 1,
  "deleted": false
}

$ omnigraph diff main review
node Person
  ~ Ada
      age: null → 36
  ~ Bob
      age: null → 40

edge Knows
  + id-02-xxxxxxxxxxxxxxxxxxxx (Ada → Bob)

$ omnigraph diff main review --op insert --kind edge --format csv
op,kind,type,id,changed,before,after
insert,edge,Knows,id-02-xxxxxxxxxxxxxxxxxxxx,[],,"{""id"": ""id-02-xxxxxxxxxxxxxxxxxxxx"", ""src"": ""Ada"", ""dst"": ""Bob"", ""since"": null}"

$ omnigraph diff main review --format jsonl --type Person
{"op": "update", "kind": "node", "type": "Person", "id": "Ada", "changed": ["age"], "before": {"id": "Ada", "name": "Ada", "age": null, "bio": null}, "after": {"id": "Ada", "name": "Ada", "age": 36, "bio": null}}
{"op": "update", "kind": "node", "type": "Person", "id": "Bob", "changed": ["age"], "before": {"id": "Bob", "name": "Bob", "age": null, "bio": null}, "after": {"id": "Bob", "name": "Bob", "age": 40, "bio": null}}

$ omnigraph diff main main
! No difference.

@python
with g.transaction(actor="ada", message="other ages") as tx:
    tx.upsert("Person", [{"name": "Ada", "age": 37, "bio": "Wrote the first program, for a machine that was never built, and notes longer than the paper they belong to."}, {"name": "Eve", "age": 20}])
with g.transaction(actor="ada", message="Bob is gone") as tx:
    import pyarrow.compute as pc
    tx.delete("Person", where=pc.field("name") == "Bob")
@end
@terminal 80
$ omnigraph merge review --dry-run
3 conflicts would stop the merge of review into main.

DivergentUpdate Person Ada age
  Person 'Ada' was changed by both in age: 37 (ours), 36 (theirs).
    before  null
    main    37
    review  36

DeleteVsUpdate Person Bob
  Person 'Bob' was deleted by ours and changed by theirs.
    before  age: null
    main    (not there)
    review  age: 40

OrphanEdge Knows id-02-xxxxxxxxxxxxxxxxxxxx to
  Knows has `to` "Bob", but there is no Person with that id.
    before  null
    main    null
    review  "Bob"

To go on
  omnigraph merge review --strategy theirs             review wins everywhere
  omnigraph merge review --strategy ours               main wins everywhere
  omnigraph merge review --strategy Person.age=theirs  by type or property
  omnigraph merge review --resolve FILE                entity by entity
  or change one of the branches and merge again.
[exit 4]

$ omnigraph merge review --resolve missing.jsonl
! error: There is no file missing.jsonl.
[exit 3]

$ omnigraph merge review --resolve people.pg
! error: people.pg:1 is not JSON: Expecting value: line 1 column 1 (char 0).
! help: Nothing was changed.
[exit 6]

$ omnigraph merge review --strategy theirs --resolve answers.jsonl --dry-run
Would merge review into main:
  Person  +1 ~1
  Knows  as in review: main has not changed it

@terminal
$ omnigraph merge review --strategy theirs --json --dry-run
{
  "outcome": "merged",
  "source": "review",
  "into": "main",
  "commit": null,
  "dry_run": true,
  "base": "id-01-xxxxxxxxxxxxxxxxxxxx",
  "adopted": [
    "edge:Knows"
  ],
  "changes": {
    "Person": {
      "insert": 1,
      "update": 1
    }
  },
  "queries": [],
  "conflicts": []
}

$ omnigraph merge review --json
! {"code": "merge_conflict", "error": "Person 'Ada' was changed by both in age: 37 (ours), 36 (theirs). (and 2 more)", "help": "Nothing was changed; choose a strategy, give rows that resolve it, or edit a branch.", "retryable": false, "exit_code": 4, "kind": "conflict", "conflicts": [{"kind": "DivergentUpdate", "type": "Person", "id": "Ada", "message": "Person 'Ada' was changed by both in age: 37 (ours), 36 (theirs).", "property": "age", "base": null, "ours": 37, "theirs": 36}, {"kind": "DeleteVsUpdate", "type": "Person", "id": "Bob", "message": "Person 'Bob' was deleted by ours and changed by theirs.", "property": null, "base": {"id": "Bob", "name": "Bob", "age": null, "bio": null}, "ours": null, "theirs": {"id": "Bob", "name": "Bob", "age": 40, "bio": null}}, {"kind": "OrphanEdge", "type": "Knows", "id": "id-02-xxxxxxxxxxxxxxxxxxxx", "message": "Knows has `to` \"Bob\", but there is no Person with that id.", "property": "to", "base": null, "ours": null, "theirs": "Bob"}]}
[exit 4]

$ omnigraph merge review --strategy theirs
Merged review into main in commit id-03-xxxxxxxxxxxxxxxxxxxx:
  Person  +1 ~1
  Knows  as in review: main has not changed it

$ omnigraph merge review
main has everything that review has.

$ omnigraph branch list --json
[
  {"branch": "main", "commit": "id-03-xxxxxxxxxxxxxxxxxxxx", "version": 5, "protected": false, "actor": "ada", "message": "merge review into main", "created_at": "2026-01-01T12:21:00Z"},
  {"branch": "review", "commit": "id-04-xxxxxxxxxxxxxxxxxxxx", "version": 2, "protected": false, "actor": "bob", "message": "ages", "created_at": "2026-01-01T12:06:00Z"}
]

$ omnigraph branch delete review --as bob
Deleted review.

$ omnigraph tag create v1 main~1
Tagged commit id-05-xxxxxxxxxxxxxxxxxxxx as v1.

$ omnigraph tag create v2
Tagged commit id-03-xxxxxxxxxxxxxxxxxxxx as v2.

$ omnigraph tag list
v1  id-05-xxxxxxxxxxxxxxxxxxxx  2026-01-01 12:14:00, ada, Bob is gone
v2  id-03-xxxxxxxxxxxxxxxxxxxx  2026-01-01 12:21:00, ada, merge review into main

$ omnigraph tag list --format csv
tag,commit,parents,kind,actor,message,created_at,labels,statistics
v1,id-05-xxxxxxxxxxxxxxxxxxxx,"[""id-06-xxxxxxxxxxxxxxxxxxxx""]",write,ada,Bob is gone,2026-01-01T12:14:00.000001Z,[],"{""Person"": {""deleted"": 1}}"
v2,id-03-xxxxxxxxxxxxxxxxxxxx,"[""id-05-xxxxxxxxxxxxxxxxxxxx"", ""id-04-xxxxxxxxxxxxxxxxxxxx""]",merge,ada,merge review into main,2026-01-01T12:21:00Z,[],"{""Person"": {""inserted"": 1, ""updated"": 1}}"

$ omnigraph snapshot v1 --format jsonl
{"ref": "v1", "branch": "main", "version": 4, "commit": "id-05-xxxxxxxxxxxxxxxxxxxx", "schema": "ca622a5bbe23d49847c9e5b3a91fc645b2daae95e06f0de3a32176495d351faf", "types": [{"type": "Person", "kind": "node", "entities": 3, "fragments": 2, "table_version": 4}, {"type": "Knows", "kind": "edge", "entities": 0, "fragments": 0, "table_version": 1}]}

$ omnigraph tag delete v1
Deleted the tag v1.

$ omnigraph tag list --json --quiet
[
  {"tag": "v2", "commit": "id-03-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-05-xxxxxxxxxxxxxxxxxxxx", "id-04-xxxxxxxxxxxxxxxxxxxx"], "kind": "merge", "actor": "ada", "message": "merge review into main", "created_at": "2026-01-01T12:21:00Z", "labels": [], "statistics": {"Person": {"inserted": 1, "updated": 1}}}
]

$ omnigraph protect main
main takes merges alone now.

$ omnigraph branch list
main  id-07-xxxxxxxxxxxxxxxxxxxx protected  2026-01-01 12:32:00, ada

$ omnigraph restore v2
! error: The branch 'main' is protected against direct writes.
! help: Write to another branch and merge it, or 'omnigraph unprotect' this one.
[exit 5]

$ omnigraph restore main~3
! error: Restoring main to main~3 changes what it holds: 2 updated, 1 deleted.
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph restore main~4 --yes
! error: The branch 'main' is protected against direct writes.
! help: Write to another branch and merge it, or 'omnigraph unprotect' this one.
[exit 5]

$ omnigraph unprotect main
main takes direct writes again.

$ omnigraph restore main~5 --dry-run
Person  ~3
Knows   -1

$ omnigraph restore main~5 --yes
Restored main to main~5 in commit id-08-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph revert main~6
Reverted id-01-xxxxxxxxxxxxxxxxxxxx in commit id-09-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph revert main --as bob -m "no, it was right"
Reverted id-09-xxxxxxxxxxxxxxxxxxxx in commit id-10-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph revert main~1
Nothing is left to undo; no commit was made.

$ omnigraph log --oneline
id-10-xxxxxxxxxxxxxxxxxxxx (main) no, it was right
id-09-xxxxxxxxxxxxxxxxxxxx revert id-01-xxxxxxxxxxxxxxxxxxxx
id-08-xxxxxxxxxxxxxxxxxxxx restore id-01-xxxxxxxxxxxxxxxxxxxx
id-11-xxxxxxxxxxxxxxxxxxxx
id-07-xxxxxxxxxxxxxxxxxxxx
id-03-xxxxxxxxxxxxxxxxxxxx (tag: v2) merge review into main
id-05-xxxxxxxxxxxxxxxxxxxx Bob is gone
id-06-xxxxxxxxxxxxxxxxxxxx other ages
id-04-xxxxxxxxxxxxxxxxxxxx ages
id-01-xxxxxxxxxxxxxxxxxxxx people
id-12-xxxxxxxxxxxxxxxxxxxx

$ omnigraph log --actor bob --json
[
  {"commit": "id-10-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-09-xxxxxxxxxxxxxxxxxxxx"], "kind": "revert", "actor": "bob", "message": "no, it was right", "created_at": "2026-01-01T12:41:00Z", "labels": ["main"], "statistics": {"Person": {"inserted": 4}}},
  {"commit": "id-04-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-01-xxxxxxxxxxxxxxxxxxxx"], "kind": "write", "actor": "bob", "message": "ages", "created_at": "2026-01-01T12:06:00Z", "labels": [], "statistics": {"Person": {"updated": 2}, "Knows": {"inserted": 1}}}
]

$ omnigraph log --kind merge --format csv
commit,created_at,kind,actor,message,labels,parents,statistics
id-03-xxxxxxxxxxxxxxxxxxxx,2026-01-01T12:21:00Z,merge,ada,merge review into main,"[""tag: v2""]","[""id-05-xxxxxxxxxxxxxxxxxxxx"", ""id-04-xxxxxxxxxxxxxxxxxxxx""]","{""Person"": {""inserted"": 1, ""updated"": 1}}"

$ omnigraph log -n 2 --format jsonl
{"commit": "id-10-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-09-xxxxxxxxxxxxxxxxxxxx"], "kind": "revert", "actor": "bob", "message": "no, it was right", "created_at": "2026-01-01T12:41:00Z", "labels": ["main"], "statistics": {"Person": {"inserted": 4}}}
{"commit": "id-09-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-08-xxxxxxxxxxxxxxxxxxxx"], "kind": "revert", "actor": "ada", "message": "revert id-01-xxxxxxxxxxxxxxxxxxxx", "created_at": "2026-01-01T12:40:00Z", "labels": [], "statistics": {"Person": {"deleted": 4}}}

$ omnigraph log --format arrow
! error: This command has no arrow to give.
! help: Use --format table, json, jsonl or csv.
[exit 2]

$ omnigraph changes main~1
id-10-xxxxxxxxxxxxxxxxxxxx no, it was right
  bob, 2026-01-01 12:41:00, revert: Person +4
  node Person
    + Ada
    + Bob
    + Eve
    + Joe

$ omnigraph changes main~1 --format jsonl --type Person --op insert
{"commit": "id-10-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-09-xxxxxxxxxxxxxxxxxxxx"], "kind": "revert", "actor": "bob", "message": "no, it was right", "created_at": "2026-01-01T12:41:00Z", "labels": [], "statistics": {"Person": {"inserted": 4}}, "schema": [], "changes": [{"op": "insert", "kind": "node", "type": "Person", "id": "Ada", "changed": [], "before": null, "after": {"id": "Ada", "name": "Ada", "age": null, "bio": null}}, {"op": "insert", "kind": "node", "type": "Person", "id": "Bob", "changed": [], "before": null, "after": {"id": "Bob", "name": "Bob", "age": null, "bio": null}}, {"op": "insert", "kind": "node", "type": "Person", "id": "Eve", "changed": [], "before": null, "after": {"id": "Eve", "name": "Eve", "age": null, "bio": null}}, {"op": "insert", "kind": "node", "type": "Person", "id": "Joe", "changed": [], "before": null, "after": {"id": "Joe", "name": "Joe", "age": null, "bio": null}}], "cursor": "cursor-13"}

$ omnigraph history Person Ada --json
[
  {"commit": "id-10-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-09-xxxxxxxxxxxxxxxxxxxx"], "kind": "revert", "actor": "bob", "message": "no, it was right", "created_at": "2026-01-01T12:41:00Z", "labels": [], "statistics": {"Person": {"inserted": 4}}, "change": {"op": "insert", "kind": "node", "type": "Person", "id": "Ada", "changed": [], "before": null, "after": {"id": "Ada", "name": "Ada", "age": null, "bio": null}}},
  {"commit": "id-09-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-08-xxxxxxxxxxxxxxxxxxxx"], "kind": "revert", "actor": "ada", "message": "revert id-01-xxxxxxxxxxxxxxxxxxxx", "created_at": "2026-01-01T12:40:00Z", "labels": [], "statistics": {"Person": {"deleted": 4}}, "change": {"op": "delete", "kind": "node", "type": "Person", "id": "Ada", "changed": [], "before": {"id": "Ada", "name": "Ada", "age": null, "bio": null}, "after": null}},
  {"commit": "id-08-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-11-xxxxxxxxxxxxxxxxxxxx"], "kind": "restore", "actor": "ada", "message": "restore id-01-xxxxxxxxxxxxxxxxxxxx", "created_at": "2026-01-01T12:39:00Z", "labels": [], "statistics": {}, "change": {"op": "update", "kind": "node", "type": "Person", "id": "Ada", "changed": ["age", "bio"], "before": {"id": "Ada", "name": "Ada", "age": 36, "bio": "Wrote the first program, for a machine that was never built, and notes longer than the paper they belong to."}, "after": {"id": "Ada", "name": "Ada", "age": null, "bio": null}}},
  {"commit": "id-03-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-05-xxxxxxxxxxxxxxxxxxxx", "id-04-xxxxxxxxxxxxxxxxxxxx"], "kind": "merge", "actor": "ada", "message": "merge review into main", "created_at": "2026-01-01T12:21:00Z", "labels": [], "statistics": {"Person": {"inserted": 1, "updated": 1}}, "change": {"op": "update", "kind": "node", "type": "Person", "id": "Ada", "changed": ["age"], "before": {"id": "Ada", "name": "Ada", "age": 37, "bio": "Wrote the first program, for a machine that was never built, and notes longer than the paper they belong to."}, "after": {"id": "Ada", "name": "Ada", "age": 36, "bio": "Wrote the first program, for a machine that was never built, and notes longer than the paper they belong to."}}},
  {"commit": "id-06-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-01-xxxxxxxxxxxxxxxxxxxx"], "kind": "write", "actor": "ada", "message": "other ages", "created_at": "2026-01-01T12:14:00Z", "labels": [], "statistics": {"Person": {"updated": 2}}, "change": {"op": "update", "kind": "node", "type": "Person", "id": "Ada", "changed": ["age", "bio"], "before": {"id": "Ada", "name": "Ada", "age": null, "bio": null}, "after": {"id": "Ada", "name": "Ada", "age": 37, "bio": "Wrote the first program, for a machine that was never built, and notes longer than the paper they belong to."}}},
  {"commit": "id-01-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-12-xxxxxxxxxxxxxxxxxxxx"], "kind": "write", "actor": "ada", "message": "people", "created_at": "2026-01-01T12:02:00Z", "labels": [], "statistics": {"Person": {"inserted": 4}}, "change": {"op": "insert", "kind": "node", "type": "Person", "id": "Ada", "changed": [], "before": null, "after": {"id": "Ada", "name": "Ada", "age": null, "bio": null}}}
]

$ omnigraph entity Person Ada --ref v2 --json
{
  "id": "Ada",
  "name": "Ada",
  "age": 36,
  "bio": "Wrote the first program, for a machine that was never built, and notes longer than the paper they belong to."
}

$ omnigraph stats --json
{
  "root": "/here/g",
  "ref": "main",
  "commit": "id-10-xxxxxxxxxxxxxxxxxxxx",
  "entities": 4,
  "types": [
    {
      "type": "Person",
      "kind": "node",
      "entities": 4,
      "fragments": 1,
      "table_version": 8
    },
    {
      "type": "Knows",
      "kind": "edge",
      "entities": 0,
      "fragments": 0,
      "table_version": 4
    }
  ],
  "branches": [
    "main"
  ],
  "tags": [
    "v2"
  ],
  "protected": [],
  "pending": []
}

$ omnigraph show main~1 --json
{
  "commit": "id-09-xxxxxxxxxxxxxxxxxxxx",
  "parents": [
    "id-08-xxxxxxxxxxxxxxxxxxxx"
  ],
  "kind": "revert",
  "actor": "ada",
  "message": "revert id-01-xxxxxxxxxxxxxxxxxxxx",
  "created_at": "2026-01-01T12:40:00Z",
  "labels": [],
  "statistics": {
    "Person": {
      "deleted": 4
    }
  },
  "changes": [
    {
      "op": "delete",
      "kind": "node",
      "type": "Person",
      "id": "Ada",
      "changed": [],
      "before": {
        "id": "Ada",
        "name": "Ada",
        "age": null,
        "bio": null
      },
      "after": null
    },
    {
      "op": "delete",
      "kind": "node",
      "type": "Person",
      "id": "Bob",
      "changed": [],
      "before": {
        "id": "Bob",
        "name": "Bob",
        "age": null,
        "bio": null
      },
      "after": null
    },
    {
      "op": "delete",
      "kind": "node",
      "type": "Person",
      "id": "Eve",
      "changed": [],
      "before": {
        "id": "Eve",
        "name": "Eve",
        "age": null,
        "bio": null
      },
      "after": null
    },
    {
      "op": "delete",
      "kind": "node",
      "type": "Person",
      "id": "Joe",
      "changed": [],
      "before": {
        "id": "Joe",
        "name": "Joe",
        "age": null,
        "bio": null
      },
      "after": null
    }
  ]
}
