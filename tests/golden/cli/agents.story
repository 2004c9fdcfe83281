# What agents need: a schema in few words, queries that mend themselves, and who wrote what.
@file people.pg
node Person @description("Somebody we know") {
    name: String @key
    age: I32? @description("in years")
}
edge Knows: Person -> Person {
    since: I32?
}
@end
$ omnigraph init g --schema people.pg
Created g with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT g
$ omnigraph mutate --as ada -m "first people" -e 'insert Person { name: "Ada", age: 36 } insert Person { name: "Bob" } insert Knows { from: "Ada", to: "Bob" }'
Person  +2
Knows   +1
Changed main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph schema describe
node Person (2) -- Somebody we know
  name: String key  e.g. "Ada", "Bob"
  age: I32? -- in years  e.g. 36
edge Knows: Person -> Person (1) as $a knows $b
  since: I32?

$ omnigraph schema describe --type Knows --characters 2000 --json
{
  "ref": "main",
  "commit": "id-01-xxxxxxxxxxxxxxxxxxxx",
  "text": "edge Knows: Person -> Person (1) as $a knows $b\n  since: I32?"
}

$ omnigraph schema describe --characters 10
! error: A description has at least 200 characters, not 10.
[exit 2]

$ omnigraph check -e 'match { $p: Persn } retrun { $p.name }'
error[Q001]: unexpected `retrun`
 --> -e:1:21
  |
1 | match { $p: Persn } retrun { $p.name }
  |                     ^^^^^^
  = expected: `return`
  = help: did you mean `return`?

Probably meant:
match { $p: Person } return { $p.name }
[exit 6]

$ omnigraph check -e 'match { $p: Person } return { $p.name }'
Nothing is wrong.

$ omnigraph check -e 'match { $p: Persn } return { $p.name }' --json
{
  "diagnostics": [
    {
      "code": "T1",
      "severity": "error",
      "message": "there is no node type `Persn`",
      "path": null,
      "span": {
        "start": 12,
        "end": 17
      },
      "start": {
        "line": 1,
        "column": 13
      },
      "end": {
        "line": 1,
        "column": 18
      },
      "expected": [],
      "suggestion": "did you mean `Person`?"
    }
  ],
  "queries": [],
  "formatted": "match {\n    $p: Persn\n}\nreturn { $p.name }\n",
  "corrected": "match { $p: Person } return { $p.name }"
}
[exit 6]

$ omnigraph mutate --as eve -m "a birthday" -e 'update Person set { age: 37 } where name = "Ada"'
Person  ~1
Changed main in commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph blame Person Ada
name  "Ada"  id-01-xxxxxxxxxxxxxxxxxxxx  ada, 2026-01-01 12:02:00  first people
age   37     id-02-xxxxxxxxxxxxxxxxxxxx  eve, 2026-01-01 12:09:00  a birthday

$ omnigraph blame Person Ada --format csv
property,value,commit
name,Ada,"{""commit"": ""id-01-xxxxxxxxxxxxxxxxxxxx"", ""parents"": [""id-03-xxxxxxxxxxxxxxxxxxxx""], ""kind"": ""mutate"", ""actor"": ""ada"", ""message"": ""first people"", ""created_at"": ""2026-01-01T12:02:00Z"", ""labels"": [], ""statistics"": {""Person"": {""inserted"": 2}, ""Knows"": {""inserted"": 1}}, ""operation"": ""id-04-xxxxxxxxxxxxxxxxxxxx"", ""tables"": {""node:Person"": {""inserted"": 2, ""bytes"": 858}, ""edge:Knows"": {""inserted"": 1, ""bytes"": 819}}}"
age,37,"{""commit"": ""id-02-xxxxxxxxxxxxxxxxxxxx"", ""parents"": [""id-01-xxxxxxxxxxxxxxxxxxxx""], ""kind"": ""mutate"", ""actor"": ""eve"", ""message"": ""a birthday"", ""created_at"": ""2026-01-01T12:09:00Z"", ""labels"": [], ""statistics"": {""Person"": {""updated"": 1}}, ""operation"": ""id-05-xxxxxxxxxxxxxxxxxxxx"", ""tables"": {""node:Person"": {""updated"": 1, ""bytes"": 618}}}"

$ omnigraph blame Person Zoe
! error: There is no Person 'Zoe' at main.
! help: 'omnigraph history Person Zoe' shows whether there was one.
[exit 3]

$ omnigraph mcp
! error: Who writes?
! help: Say --as NAME: what it writes goes to the branch agent/NAME.
[exit 2]

# An agent works on its own branch; somebody reviews it, again and again, and merges or discards it.
$ omnigraph branch create agent/eve
Created agent/eve from main at commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate -b agent/eve --as eve -m "Zoe was missing" -e 'insert Person { name: "Zoe" } insert Knows { from: "Zoe", to: "Ada" }'
Person  +1
Knows   +1
Changed agent/eve in commit id-06-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate -b agent/eve --as eve -m "a birthday" -e 'update Person set { age: 26 } where name = "Bob"'
Person  ~1
Changed agent/eve in commit id-07-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph review agent/eve
id-06-xxxxxxxxxxxxxxxxxxxx Zoe was missing
  eve, 2026-01-01 12:15:00, mutate: Person +1, Knows +1
  node Person
    + Zoe

  edge Knows
    + id-08-xxxxxxxxxxxxxxxxxxxx (Zoe → Ada)

id-07-xxxxxxxxxxxxxxxxxxxx a birthday
  eve, 2026-01-01 12:16:00, mutate: Person ~1
  node Person
    ~ Bob
        age: null → 26

Merged into main it would bring:
  Person  +1 ~1
  Knows   +1

$ omnigraph review agent/eve --since-review --seen --as ada
id-06-xxxxxxxxxxxxxxxxxxxx Zoe was missing
  eve, 2026-01-01 12:15:00, mutate: Person +1, Knows +1
  node Person
    + Zoe

  edge Knows
    + id-08-xxxxxxxxxxxxxxxxxxxx (Zoe → Ada)

id-07-xxxxxxxxxxxxxxxxxxxx a birthday
  eve, 2026-01-01 12:16:00, mutate: Person ~1
  node Person
    ~ Bob
        age: null → 26

Merged into main it would bring:
  Person  +1 ~1
  Knows   +1
! Marked as seen up to id-07-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate -b agent/eve --as eve -m "one more" -e 'insert Person { name: "Max" }'
Person  +1
Changed agent/eve in commit id-09-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph review agent/eve --since-review
id-09-xxxxxxxxxxxxxxxxxxxx one more
  eve, 2026-01-01 12:19:00, mutate: Person +1
  node Person
    + Max

Merged into main it would bring:
  Person  +2 ~1
  Knows   +1

$ omnigraph mutate --as ada -m "on main" -e 'update Person set { age: 30 } where name = "Bob"'
Person  ~1
Changed main in commit id-10-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph review agent/eve --since-review --seen
id-09-xxxxxxxxxxxxxxxxxxxx one more
  eve, 2026-01-01 12:19:00, mutate: Person +1
  node Person
    + Max

1 conflict with main:

DivergentUpdate Person Bob age
  Person 'Bob' was changed by both in age: 30 (ours), 26 (theirs).
    before     null
    main       30
    agent/eve  26

Settle it: --merge with --strategy ours or theirs, or with --resolve FILE.
! Marked as seen up to id-09-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph review agent/eve --merge --as ada -m reviewed
! 1 conflict stopped the merge of agent/eve into main.
!
! DivergentUpdate Person Bob age
!   Person 'Bob' was changed by both in age: 30 (ours), 26 (theirs).
!     before     null
!     main       30
!     agent/eve  26
!
! To go on
!   omnigraph merge agent/eve --strategy theirs             agent/eve wins everywhere
!   omnigraph merge agent/eve --strategy ours               main wins everywhere
!   omnigraph merge agent/eve --strategy Person.age=theirs  by type or property
!   omnigraph merge agent/eve --resolve FILE                entity by entity
!   or change one of the branches and merge again.
!
! Nothing was changed.
[exit 4]

$ omnigraph review agent/eve --merge --strategy ours --as ada -m reviewed
Merged agent/eve into main in commit id-11-xxxxxxxxxxxxxxxxxxxx:
  Person  +2
  Knows  as in agent/eve: main has not changed it

$ omnigraph review agent/eve
There is nothing new on agent/eve.
main has everything that it has.

$ omnigraph blame Person Zoe
name  "Zoe"  id-06-xxxxxxxxxxxxxxxxxxxx  eve, 2026-01-01 12:15:00  Zoe was missing
age   null   id-06-xxxxxxxxxxxxxxxxxxxx  eve, 2026-01-01 12:15:00  Zoe was missing

$ omnigraph blame Person Bob
name  "Bob"  id-01-xxxxxxxxxxxxxxxxxxxx  ada, 2026-01-01 12:02:00  first people
age   30     id-10-xxxxxxxxxxxxxxxxxxxx  ada, 2026-01-01 12:21:00  on main

$ omnigraph mutate -b agent/eve --as eve -m "nonsense" -e 'update Person set { age: 1 } where name = "Bob"'
Person  ~1
Changed agent/eve in commit id-12-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph review agent/eve --json
{
  "branch": "agent/eve",
  "into": "main",
  "seen": "id-09-xxxxxxxxxxxxxxxxxxxx",
  "commits": [
    {
      "commit": "id-12-xxxxxxxxxxxxxxxxxxxx",
      "parents": [
        "id-09-xxxxxxxxxxxxxxxxxxxx"
      ],
      "kind": "mutate",
      "actor": "eve",
      "message": "nonsense",
      "created_at": "2026-01-01T12:28:00Z",
      "labels": [],
      "statistics": {
        "Person": {
          "updated": 1
        }
      },
      "changes": [
        {
          "op": "update",
          "kind": "node",
          "type": "Person",
          "id": "Bob",
          "changed": [
            "age"
          ],
          "before": {
            "id": "Bob",
            "name": "Bob",
            "age": 26
          },
          "after": {
            "id": "Bob",
            "name": "Bob",
            "age": 1
          }
        }
      ],
      "more": 0
    }
  ],
  "merge": {
    "outcome": "merged",
    "source": "agent/eve",
    "into": "main",
    "commit": null,
    "dry_run": true,
    "base": "id-09-xxxxxxxxxxxxxxxxxxxx",
    "adopted": [],
    "changes": {},
    "queries": [],
    "conflicts": [
      {
        "kind": "DivergentUpdate",
        "type": "Person",
        "id": "Bob",
        "property": "age",
        "message": "Person 'Bob' was changed by both in age: 30 (ours), 1 (theirs).",
        "base": 26,
        "ours": 30,
        "theirs": 1
      }
    ]
  }
}

$ omnigraph review agent/eve --discard
! error: This deletes agent/eve with 1 commit that nobody merged.
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph review agent/eve --discard --yes
Discarded agent/eve.

$ omnigraph review agent/eve
! error: There is no branch 'agent/eve'.
[exit 3]

$ omnigraph review agent/eve --discard --merge
! error: A branch is merged or discarded, not both.
[exit 2]
