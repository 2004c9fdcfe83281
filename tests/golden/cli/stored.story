# Queries that are kept in the graph, and run by name.
@file people.pg
node Person {
    name: String @key
    age: I32?
}
@end
@file queries.gq
// People above some age.
query older($n: I32) {
    match { $p: Person $p.age > $n }
    return { $p.name, $p.age }
    order { $p.name }
}

query birthday($name: String) @description("A year more.") {
    update Person set { age: age + 1 } where name = $name
}
@end
@file wrong.gq
query wrong() { match { $p: Nobody } return { $p.name } }
@end
@file fewer.pg
node Person {
    name: String @key
}
@end
$ omnigraph init g --schema people.pg
Created g with 1 node type and 0 edge types.

@set OMNIGRAPH_ROOT g
$ omnigraph mutate -e 'insert Person { name: "Ada", age: 36 } insert Person { name: "Bob", age: 60 }' --as ada
Person  +2
Changed main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph queries list
! There are no stored queries.

$ omnigraph queries set queries.gq --as ada
+ birthday
+ older
Changed main in commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph queries set queries.gq
They are stored already; no commit was made.

$ omnigraph queries set --name names -e 'match { $p: Person } return { $p.name }' --json
{
  "branch": "main",
  "set": [
    "names"
  ],
  "removed": [],
  "commit": "id-03-xxxxxxxxxxxxxxxxxxxx",
  "repeated": false
}

$ omnigraph queries list
birthday($name: String)  → changes Person
    A year more.
names()  → p.name: String
older($n: I32)  → p.name: String, p.age: I32?
    People above some age.

$ omnigraph queries list --json
[
  {"name": "birthday", "text": "query birthday($name: String) @description(\"A year more.\") {\n    update Person set { age: age + 1 } where name = $name\n}\n", "kind": "mutation", "parameters": [{"name": "name", "kind": "String", "nullable": false, "required": true, "default": null}], "columns": [], "reads": ["Person"], "writes": ["Person"], "description": "A year more.", "instruction": null, "problem": ""},
  {"name": "names", "text": "match { $p: Person } return { $p.name }\n", "kind": "read", "parameters": [], "columns": [{"name": "p.name", "kind": "String", "nullable": false}], "reads": ["Person"], "writes": [], "description": null, "instruction": null, "problem": ""},
  {"name": "older", "text": "// People above some age.\nquery older($n: I32) {\n    match { $p: Person $p.age > $n }\n    return { $p.name, $p.age }\n    order { $p.name }\n}\n", "kind": "read", "parameters": [{"name": "n", "kind": "I32", "nullable": false, "required": true, "default": null}], "columns": [{"name": "p.name", "kind": "String", "nullable": false}, {"name": "p.age", "kind": "I32", "nullable": true}], "reads": ["Person"], "writes": [], "description": "People above some age.", "instruction": null, "problem": ""}
]

$ omnigraph queries show older
// People above some age.
query older($n: I32) {
    match { $p: Person $p.age > $n }
    return { $p.name, $p.age }
    order { $p.name }
}

$ omnigraph queries show younger
! error: There is no stored query 'younger'.
! help: List them with g.queries(), or `omnigraph queries list`.
[exit 3]

$ omnigraph queries run older --param n=40 --quiet
p.name  p.age
──────  ─────
Bob        60

$ omnigraph queries run birthday --param name=Ada --as bob
Person  ~1
Changed main in commit id-04-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph queries run older --param n=36 --ref main~1 --json
[
  {"p.name": "Bob", "p.age": 60}
]

$ omnigraph queries run nothing
! error: There is no stored query 'nothing'.
! help: List them with g.queries(), or `omnigraph queries list`.
[exit 3]

$ omnigraph queries run older
! error: The parameters do not fit: $n is missing, and it must be a I32.
[exit 6]

$ omnigraph queries set wrong.gq
! error: The query 'wrong' has 1 mistake.
!   error[T1]: there is no node type `Nobody`
!    --> wrong:1:29
!     |
!   1 | query wrong() { match { $p: Nobody } return { $p.name } }
!     |                             ^^^^^^
[exit 6]

$ omnigraph queries set -e 'match { $p: Person } return { $p.name }'
! error: A query in -e has no name.
! help: Give it a header, or say --name NAME.
[exit 2]

$ omnigraph queries set
! error: Which queries? Give files, or one text with -e.
[exit 2]

$ omnigraph queries set -e 'match {'
! error: The file has 1 mistake.
!   error[Q008]: the text ends in the middle of a query
!    --> -e:1:8
!     |
!   1 | match {
!     |        ^
!     = expected: a clause or `case`
[exit 6]

$ omnigraph schema plan fewer.pg
1 step: 1 destructive. Nothing will be applied.

destructive  OG-DS-102  drop property Person.age
                        its values leave the graph; history keeps them unless
                        data loss is allowed

The stored query birthday would not run any more:
error[T11]: `Person` has no property `age`
 --> birthday:2:25
  |
2 |     update Person set { age: age + 1 } where name = $name
  |                         ^^^

error[T11]: `Person` has no property `age`
 --> birthday:2:30
  |
2 |     update Person set { age: age + 1 } where name = $name
  |                              ^^^

The stored query older would not run any more:
error[T6]: `Person` has no property `age`
 --> older:3:27
  |
3 |     match { $p: Person $p.age > $n }
  |                           ^^^

error[T6]: `Person` has no property `age`
 --> older:4:26
  |
4 |     return { $p.name, $p.age }
  |                          ^^^
[exit 6]

$ omnigraph schema apply fewer.pg --yes
! 1 step: 1 destructive. Nothing will be applied.
!
! destructive  OG-DS-102  drop property Person.age
!                         its values leave the graph; history keeps them unless
!                         data loss is allowed
!
! The stored query birthday would not run any more:
! error[T11]: `Person` has no property `age`
!  --> birthday:2:25
!   |
! 2 |     update Person set { age: age + 1 } where name = $name
!   |                         ^^^
!
! error[T11]: `Person` has no property `age`
!  --> birthday:2:30
!   |
! 2 |     update Person set { age: age + 1 } where name = $name
!   |                              ^^^
!
! The stored query older would not run any more:
! error[T6]: `Person` has no property `age`
!  --> older:3:27
!   |
! 3 |     match { $p: Person $p.age > $n }
!   |                           ^^^
!
! error[T6]: `Person` has no property `age`
!  --> older:4:26
!   |
! 4 |     return { $p.name, $p.age }
!   |                          ^^^
! error: 2 stored queries would not run under this schema.
!   error[T11]: `Person` has no property `age`
!    --> birthday:2:25
!     |
!   2 |     update Person set { age: age + 1 } where name = $name
!     |                         ^^^
!
!   error[T11]: `Person` has no property `age`
!    --> birthday:2:30
!     |
!   2 |     update Person set { age: age + 1 } where name = $name
!     |                              ^^^
!
!   error[T6]: `Person` has no property `age`
!    --> older:3:27
!     |
!   3 |     match { $p: Person $p.age > $n }
!     |                           ^^^
!
!   error[T6]: `Person` has no property `age`
!    --> older:4:26
!     |
!   4 |     return { $p.name, $p.age }
!     |                          ^^^
! help: Change or remove these queries first, with g.store_queries() or `omnigraph queries`.
[exit 6]

$ omnigraph branch create review
Created review from main at commit id-04-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph queries set --name names -e 'match { $p: Person } return { $p.name, $p.age }' --branch review
+ names
Changed review in commit id-05-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph queries remove names
- names
Changed main in commit id-06-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph diff main review
query + names

$ omnigraph merge review
! 1 conflict stopped the merge of review into main.
!
! Query query names
!   The stored query 'names' was removed by ours and changed by theirs.
!     before  "match { $p: Person } return { $p.name }\n"
!     main    (not there)
!     review  "match { $p: Person } return { $p.name, $p.age }\n"
!
! To go on
!   omnigraph merge review --strategy theirs        review wins everywhere
!   omnigraph merge review --strategy ours          main wins everywhere
!   omnigraph merge review --strategy query=theirs  by type or property
!   omnigraph merge review --resolve FILE           entity by entity
!   or change one of the branches and merge again.
!
! Nothing was changed.
[exit 4]

$ omnigraph merge review --strategy query=theirs
Merged review into main in commit id-07-xxxxxxxxxxxxxxxxxxxx:
  queries names
  no entity changes

$ omnigraph diff main~1 main --summary
query  +1

$ omnigraph diff main~1 main --json
[
  {"op": "insert", "kind": "query", "type": "query", "id": "names", "changed": [], "before": null, "after": {"text": "match { $p: Person } return { $p.name, $p.age }\n"}}
]

$ omnigraph queries remove older nothing
! error: There is no stored query 'nothing'.
! help: List them with g.queries(), or `omnigraph queries list`.
[exit 3]

$ omnigraph log --limit 3
id-07-xxxxxxxxxxxxxxxxxxxx (main) merge review into main
  2026-01-01 12:27:00, merge
id-06-xxxxxxxxxxxxxxxxxxxx remove names
  2026-01-01 12:24:00, queries
id-05-xxxxxxxxxxxxxxxxxxxx (review) store names
  2026-01-01 12:23:00, queries

$ omnigraph queries list --ref nothing
! error: There is no branch 'nothing'.
[exit 3]
