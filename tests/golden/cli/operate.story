# Keeping a graph in shape.
@file people.pg
node Person {
    name: String @key
    age: I32? @index
}
@end
$ omnigraph init g --schema people.pg
Created g with 1 node type and 0 edge types.

@set OMNIGRAPH_ROOT g
@python
for n in range(4):
    with g.transaction() as tx:
        tx.append("Person", [{"name": f"person {n}", "age": n}])
@end
$ omnigraph optimize --dry-run
Person  4 → 1 fragments (n.n KB)
  waits id_btree: fewer than 1,024 rows: reading them is as fast
  waits name_btree: fewer than 1,024 rows: reading them is as fast
  waits age_btree: fewer than 1,024 rows: reading them is as fast

$ omnigraph optimize
Person  4 → 1 fragments (n.n KB)
  waits id_btree: fewer than 1,024 rows: reading them is as fast
  waits name_btree: fewer than 1,024 rows: reading them is as fast
  waits age_btree: fewer than 1,024 rows: reading them is as fast
Optimized main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph optimize
There is nothing to do.

$ omnigraph optimize --json
{
  "branch": "main",
  "commit": null,
  "dry_run": false,
  "gave_way": false,
  "folded": 0,
  "types": {
    "Person": {
      "fragments": [
        1,
        1
      ],
      "segments": [
        0,
        0
      ],
      "rewritten": 0,
      "rewritten_bytes": 0,
      "indexed": [],
      "dropped": [],
      "pending": [
        "id_btree: fewer than 1,024 rows: reading them is as fast",
        "name_btree: fewer than 1,024 rows: reading them is as fast",
        "age_btree: fewer than 1,024 rows: reading them is as fast"
      ]
    }
  }
}

$ omnigraph optimize --type Persn
! error: There is no type 'Persn'.
! help: Did you mean Person?
[exit 3]

$ omnigraph optimize --branch nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph show
commit id-01-xxxxxxxxxxxxxxxxxxxx (main)
parent id-02-xxxxxxxxxxxxxxxxxxxx
actor  omnigraph:maintenance
time   2026-01-01 12:04:00 UTC
kind   optimize

! No difference.

$ omnigraph log -n 1
id-02-xxxxxxxxxxxxxxxxxxxx (main)
  2026-01-01 12:02:00, write: Person +1
! 1 commit of maintenance not shown (--maintenance)
