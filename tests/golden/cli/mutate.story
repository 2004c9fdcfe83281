# Changes in the language, and a shell script of them.
@file people.pg
node Person {
    name: String @key
    age: I32?
}
edge Knows: Person -> Person {
    since: Date?
}
@end
@file changes.gq
query add($name: String, $age: I32?) {
    insert Person { name: $name, age: $age }
}

query meet($a: String, $b: String) {
    insert Knows { from: $a, to: $b }
}

query birthday($name: String) {
    update Person set { age: age + 1 } where name = $name
}

query forget($name: String) {
    delete Person where name = $name
}
@end
$ omnigraph init g --schema people.pg
Created g with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT g
$ omnigraph mutate -e 'insert Person { name: "Ada", age: 36 } insert Person { name: "Bob" } insert Knows { from: "Ada", to: "Bob" }' --as ada -m "first"
Person  +2
Knows   +1
Changed main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate changes.gq add --param name=Eve --param age=20 --json
{
  "branch": "main",
  "query": "add",
  "nodes": 1,
  "edges": 0,
  "types": {
    "Person": {
      "inserted": 1,
      "updated": 0,
      "deleted": 0
    }
  },
  "commit": "id-02-xxxxxxxxxxxxxxxxxxxx",
  "repeated": false,
  "embedded": 0
}

$ omnigraph mutate changes.gq birthday --param name=Ada --as bob
Person  ~1
Changed main in commit id-03-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate changes.gq birthday --param name=Nobody
Nothing matched; no commit was made.

$ omnigraph mutate changes.gq forget --param name=Bob
Person  -1
Knows   -1
Changed main in commit id-04-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate changes.gq add --param name=Joe --idempotency-key k1 --quiet
Person  +1
Changed main in commit id-05-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate changes.gq add --param name=Joe --idempotency-key k1
It was done before, in commit id-05-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate changes.gq add --param name=Pat --idempotency-key k1
! error: The idempotency key belongs to commit id-05-xxxxxxxxxxxxxxxxxxxx, which did something else.
! help: The key was used before for a different write; use a new key for a new write.
[exit 4]

$ omnigraph mutate changes.gq add --param name=Pat --if-commit 01ARZ3NDEKTSV4RRFFQ69G5FAV
! error: The branch 'main' is at commit id-05-xxxxxxxxxxxxxxxxxxxx, not at id-06-xxxxxxxxxxxxxxxxxxxx.
! help: Nothing was changed; look at the new commits and give --if-commit again.
[exit 4]

$ omnigraph mutate changes.gq meet --param a=Ada --param b=Nobody
! error: Knows has `to` "Nobody", but there is no Person with that id.
! help: Nothing was changed.
[exit 6]

$ omnigraph mutate changes.gq ad --param name=x
! error: The query has 1 mistake.
!   error[Q013]: there is no query `ad`
!    --> changes.gq:1:1
!     |
!   1 | query add($name: String, $age: I32?) {
!     | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ … to line 15
!     = help: did you mean `add`?
[exit 6]

$ omnigraph mutate changes.gq add --param name=x --param age=old
! error: The parameters do not fit: $age is str where I32 is needed.
[exit 6]

$ omnigraph mutate -e 'insert Prson { name: "x" }'
! error: The query has 1 mistake.
!   error[T10]: there is no type `Prson`
!    --> -e:1:8
!     |
!   1 | insert Prson { name: "x" }
!     |        ^^^^^
!     = help: did you mean `Person`?
[exit 6]

$ omnigraph mutate -e 'match { $p: Person } return { $p.name }'
! error: This query only reads, and 'mutate' takes insert, update and delete.
! help: Use 'omnigraph query'.
[exit 2]

$ omnigraph mutate -e 'insert Person { name: "x" }' --branch nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph mutate
! error: Which query? Give a file, or the text with -e.
[exit 2]

$ omnigraph shell
< branch create work
< \use work
< insert Person { name: "Kim",
<   age: 5 }
< match { $p: Person }
< return { $p.name as name, $p.age as age } order { name }
<
< \log --oneline -n 1
< \use main
< branch merge work
< branch lst
Created work from main at commit id-05-xxxxxxxxxxxxxxxxxxxx.
Person  +1
Changed work in commit id-07-xxxxxxxxxxxxxxxxxxxx.
name   age
────  ────
Ada     37
Eve     20
Joe   null
Kim      5
id-07-xxxxxxxxxxxxxxxxxxxx (work)
Brought main forward to work in commit id-08-xxxxxxxxxxxxxxxxxxxx (no commits of its own).
! 4 rows
! error[Q001]: unexpected `lst`
!  --> input:1:8
!   |
! 1 | branch lst
!   |        ^^^
!   = expected: `delete`, `create`, `merge` or `list`
!   = help: did you mean `list`?
!
[exit 6]

$ omnigraph shell --ref work --quiet
< \log --oneline -n 1
< \types
id-07-xxxxxxxxxxxxxxxxxxxx (work)
type    kind  entities  properties
──────  ────  ────────  ──────────
Person  node         4  name, age
Knows   edge         0  since

$ omnigraph shell --ref nope
! error: There is no branch 'nope'.
[exit 3]
