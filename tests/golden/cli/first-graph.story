# A graph is made, filled and looked at.
@file people.pg
node Person {
    name: String @key
    age: I32?
    email: String?
}

node Company {
    name: String @key
}

edge Knows: Person -> Person {
    since: Date?
}

edge WorksAt: Person -> Company
@end
$ omnigraph init people.graph --schema people.pg --as ada
Created people.graph with 2 node types and 2 edge types.

@set OMNIGRAPH_ROOT people.graph
@python
with g.transaction(actor="ada", message="first people") as tx:
    tx.upsert("Person", [{"name": "Ada", "age": 36, "email": "ada@example.org"}, {"name": "Alan", "age": 41}])
    tx.upsert("Company", [{"name": "Acme"}])
    tx.append("WorksAt", [{"src": "Ada", "dst": "Acme"}])
@end
@python
with g.transaction(actor="bob", message="one more, and Alan has a birthday") as tx:
    tx.upsert("Person", [{"name": "Grace"}, {"name": "Alan", "age": 42}])
@end
@terminal 80
$ omnigraph stats
/here/people.graph
main at id-01-xxxxxxxxxxxxxxxxxxxx  2026-01-01 12:03:00, bob

Type     Kind  Entities                    Fragments  Version
Company  node         1  █████▍                    1        2
Person   node         3  ████████████████          2        3
Knows    edge         0                            0        1
WorksAt  edge         1  █████▍                    1        2
total                 5                            4

1 branch, 0 tags

$ omnigraph log
id-01-xxxxxxxxxxxxxxxxxxxx (main) one more, and Alan has a birthday
  bob, 2026-01-01 12:03:00, write: Person +1 ~1
id-02-xxxxxxxxxxxxxxxxxxxx first people
  ada, 2026-01-01 12:02:00, write: Person +2, Company +1, WorksAt +1
id-03-xxxxxxxxxxxxxxxxxxxx
  ada, 2026-01-01 12:01:00, init

$ omnigraph show
commit id-01-xxxxxxxxxxxxxxxxxxxx (main)
parent id-02-xxxxxxxxxxxxxxxxxxxx
actor  bob
time   2026-01-01 12:03:00 UTC
kind   write

    one more, and Alan has a birthday

node Person
  + Grace
  ~ Alan
      age: 41 → 42

$ omnigraph show main~1
commit id-02-xxxxxxxxxxxxxxxxxxxx
parent id-03-xxxxxxxxxxxxxxxxxxxx
actor  ada
time   2026-01-01 12:02:00 UTC
kind   write

    first people

node Company
  + Acme

node Person
  + Ada  age: 36, email: "ada@example.org"
  + Alan  age: 41

edge WorksAt
  + id-04-xxxxxxxxxxxxxxxxxxxx (Ada → Acme)

$ omnigraph show main~2
commit id-03-xxxxxxxxxxxxxxxxxxxx
actor  ada
time   2026-01-01 12:01:00 UTC
kind   init

$ omnigraph snapshot
branch   main
version  3
commit   id-01-xxxxxxxxxxxxxxxxxxxx
schema   0b290ab9b1c4c6a6030ad552bc6345ff3583edcfb0778f3c714c07f6f0406ddb
time     2026-01-01 12:03:00 UTC

Type     Kind  Entities                    Fragments  Version
Company  node         1  █████▍                    1        2
Person   node         3  ████████████████          2        3
Knows    edge         0                            0        1
WorksAt  edge         1  █████▍                    1        2
total                 5                            4

$ omnigraph entity Person Ada
id     "Ada"
name   "Ada"
age    36
email  "ada@example.org"

$ omnigraph history Person Alan
id-01-xxxxxxxxxxxxxxxxxxxx one more, and Alan has a birthday
  bob, 2026-01-01 12:03:00, write: Person +1 ~1
  ~ Alan
      age: 41 → 42
id-02-xxxxxxxxxxxxxxxxxxxx first people
  ada, 2026-01-01 12:02:00, write: Person +2, Company +1, WorksAt +1
  + Alan  age: 41

$ omnigraph diff main~1
node Person
  + Grace
  ~ Alan
      age: 41 → 42

$ omnigraph diff main~1 --summary
Person  +1 ~1

$ omnigraph changes
id-03-xxxxxxxxxxxxxxxxxxxx
  ada, 2026-01-01 12:01:00, init
  schema add node type Company with 1 property
  schema add node type Person with 3 properties
  schema add edge type Knows with 1 property
  schema add edge type WorksAt with no properties

id-02-xxxxxxxxxxxxxxxxxxxx first people
  ada, 2026-01-01 12:02:00, write: Person +2, Company +1, WorksAt +1
  node Company
    + Acme

  node Person
    + Ada  age: 36, email: "ada@example.org"
    + Alan  age: 41

  edge WorksAt
    + id-04-xxxxxxxxxxxxxxxxxxxx (Ada → Acme)

id-01-xxxxxxxxxxxxxxxxxxxx one more, and Alan has a birthday
  bob, 2026-01-01 12:03:00, write: Person +1 ~1
  node Person
    + Grace
    ~ Alan
        age: 41 → 42

$ omnigraph schema show Person
node Person {
    name: String @key
    age: I32?
    email: String?
}

$ omnigraph branch create review
Created review from main at commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph branch list
main    id-01-xxxxxxxxxxxxxxxxxxxx  2026-01-01 12:03:00, bob, one more, and Ala…
review  id-01-xxxxxxxxxxxxxxxxxxxx  2026-01-01 12:03:00, bob, one more, and Ala…

@python
with g.branch("review").transaction(actor="bob", message="review the ages of everybody in the whole graph, one after the other") as tx:
    tx.upsert("Person", [{"name": "Ada", "age": 37}, {"name": "Alan", "age": 43}])
@end
@python
with g.transaction(actor="ada") as tx:
    tx.upsert("Person", [{"name": "Alan", "age": 44}])
@end
$ omnigraph merge review --dry-run
1 conflict would stop the merge of review into main.

DivergentUpdate Person Alan age
  Person 'Alan' was changed by both in age: 44 (ours), 43 (theirs).
    before  42
    main    44
    review  43

To go on
  omnigraph merge review --strategy theirs             review wins everywhere
  omnigraph merge review --strategy ours               main wins everywhere
  omnigraph merge review --strategy Person.age=theirs  by type or property
  omnigraph merge review --resolve FILE                entity by entity
  or change one of the branches and merge again.
[exit 4]

$ omnigraph merge review
! 1 conflict stopped the merge of review into main.
!
! DivergentUpdate Person Alan age
!   Person 'Alan' was changed by both in age: 44 (ours), 43 (theirs).
!     before  42
!     main    44
!     review  43
!
! To go on
!   omnigraph merge review --strategy theirs             review wins everywhere
!   omnigraph merge review --strategy ours               main wins everywhere
!   omnigraph merge review --strategy Person.age=theirs  by type or property
!   omnigraph merge review --resolve FILE                entity by entity
!   or change one of the branches and merge again.
!
! Nothing was changed.
[exit 4]

$ omnigraph merge review --strategy Person.age=theirs --as ada
Merged review into main in commit id-05-xxxxxxxxxxxxxxxxxxxx:
  Person  ~2

$ omnigraph tag create v1
Tagged commit id-05-xxxxxxxxxxxxxxxxxxxx as v1.

$ omnigraph log --graph --all
● id-05-xxxxxxxxxxxxxxxxxxxx (main, tag: v1) merge review into main
│   ada, 2026-01-01 12:22:00, merge: Person ~2
├─╮
● │ id-06-xxxxxxxxxxxxxxxxxxxx
│ │   ada, 2026-01-01 12:19:00, write: Person ~1
│ ● id-07-xxxxxxxxxxxxxxxxxxxx (review) review the ages of everybody in the who…
│ │   bob, 2026-01-01 12:18:00, write: Person ~2
├─╯
● id-01-xxxxxxxxxxxxxxxxxxxx one more, and Alan has a birthday
│   bob, 2026-01-01 12:03:00, write: Person +1 ~1
● id-02-xxxxxxxxxxxxxxxxxxxx first people
│   ada, 2026-01-01 12:02:00, write: Person +2, Company +1, WorksAt +1
● id-03-xxxxxxxxxxxxxxxxxxxx
    ada, 2026-01-01 12:01:00, init

$ omnigraph log --graph --oneline
● id-05-xxxxxxxxxxxxxxxxxxxx (main, tag: v1) merge review into main
├─╮
● │ id-06-xxxxxxxxxxxxxxxxxxxx
│ ● id-07-xxxxxxxxxxxxxxxxxxxx (review) review the ages of everybody in the who…
├─╯
● id-01-xxxxxxxxxxxxxxxxxxxx one more, and Alan has a birthday
● id-02-xxxxxxxxxxxxxxxxxxxx first people
● id-03-xxxxxxxxxxxxxxxxxxxx

$ omnigraph log --graph --io -n 1
● id-05-xxxxxxxxxxxxxxxxxxxx (main, tag: v1) merge review into main
│   ada, 2026-01-01 12:22:00, merge: Person ~2
├─╮
~ ~
! io: 9 reads, 0 writes, 6 hops in sequence, n.n KB in, 0 bytes out
!   graph            get 1
!   version          get 4, list 4
