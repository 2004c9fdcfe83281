# Long names, long texts and long lines at a terminal of 80 columns: nothing but commands to copy,
# names and the values of one entity is wider.
@file people.pg
node Person {
    name: String @key
    bio: String?
    tags: [String]?
    born: Date?
}

edge Knows: Person -> Person {
    since: DateTime?
}
@end
@file wrong.pg
node Person { name: String @key  age: I32?  height: F64?  weight: F64?  shoes: Intt?  hat: String? }
@end
@file people.jsonl
{"type": "Person", "data": {"name": "ada", "bio": "Wrote the first program, for a machine that was never built, and notes longer than the paper they belong to.", "tags": ["math", "poetry"]}}
{"type": "Person", "data": {"name": "日本語の名前がとても長い人", "bio": "many\nlines\tand \u001b[31mred"}}
{"type": "Person", "data": {"name": "bob"}}
{"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": "2020-01-01T00:00:00Z"}}
@end
@terminal 80
$ omnigraph init g --schema wrong.pg
! error: The schema has 1 mistake.
!   error[P110]: there is no property type `Intt`
!    --> wrong.pg:1:80
!     |
!   1 | …key  age: I32?  height: F64?  weight: F64?  shoes: Intt?  hat: String? }
!     |                                                     ^^^^
!     = expected: String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, Vector(n), enum(a, b) or [Type]
[exit 6]

$ omnigraph init g --schema people.pg
Created g with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT g
$ omnigraph load people.jsonl --as ada -m "people with long lives and a message that is longer than a line of a terminal"
Person  +3
Knows   +1
Loaded into main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph branch create a-branch-with-a-long-name
Created a-branch-with-a-long-name from main at commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate -b a-branch-with-a-long-name --as "somebody with a long name" -e 'update Person set { bio: "Wrote the first program ever, for a machine that was never built, and notes that are longer than the paper." } where name = "ada" delete Person where name = "bob"'
Person  ~1 -1
Knows   -1
Changed a-branch-with-a-long-name in commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate --as ada -e 'update Person set { bio: "Mathematician" } where name = "ada" update Person set { born: date("1990-01-01") } where name = "bob"'
Person  ~2
Changed main in commit id-03-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph diff main a-branch-with-a-long-name
node Person
  - bob  born: 1990-01-01
  ~ ada
      bio:
        - "Mathematician"
        + "Wrote the first program ever, for a machine that was never built, an…

edge Knows
  - id-04-xxxxxxxxxxxxxxxxxxxx (ada → bob)  since: 2020-01-01T00:00:00Z

$ omnigraph merge a-branch-with-a-long-name --dry-run
2 conflicts would stop the merge of a-branch-with-a-long-name into main.

DivergentUpdate Person ada bio
  Person 'ada' was changed by both in bio: 'Mathematician' (ours), 'Wrote the
  first program ever, for a machine that was never built, and notes that are
  longer than the paper.' (theirs).
    before                     "Wrote the first program, for a machine that was…
    main                       "Mathematician"
    a-branch-with-a-long-name  "Wrote the first program ever, for a machine tha…

DeleteVsUpdate Person bob
  Person 'bob' was deleted by theirs and changed by ours.
    before                     born: null
    main                       born: 1990-01-01
    a-branch-with-a-long-name  (not there)

To go on
  omnigraph merge a-branch-with-a-long-name --strategy theirs
      a-branch-with-a-long-name wins everywhere
  omnigraph merge a-branch-with-a-long-name --strategy ours
      main wins everywhere
  omnigraph merge a-branch-with-a-long-name --strategy Person.bio=theirs
      by type or property
  omnigraph merge a-branch-with-a-long-name --resolve FILE
      entity by entity
  or change one of the branches and merge again.
[exit 4]

$ omnigraph merge a-branch-with-a-long-name --strategy theirs --as ada
Merged a-branch-with-a-long-name into main in commit id-05-xxxxxxxxxxxxxxxxxxxx:
  Person  ~1 -1
  Knows  as in a-branch-with-a-long-name: main has not changed it

$ omnigraph log --graph
● id-05-xxxxxxxxxxxxxxxxxxxx (main) merge a-branch-with-a-long-name into main
│   ada, 2026-01-01 12:09:00, merge: Person ~1 -1
├─╮
● │ id-03-xxxxxxxxxxxxxxxxxxxx
│ │   ada, 2026-01-01 12:06:00, mutate: Person ~2
│ ● id-02-xxxxxxxxxxxxxxxxxxxx (a-branch-with-a-long-name)
│ │   somebody with a long name, 2026-01-01 12:05:00, mutate: Person ~1 -1, Kno…
├─╯
● id-01-xxxxxxxxxxxxxxxxxxxx people with long lives and a message that is longe…
│   ada, 2026-01-01 12:03:00, load: Person +3, Knows +1
● id-06-xxxxxxxxxxxxxxxxxxxx
    2026-01-01 12:02:00, init

$ omnigraph history Person ada
id-05-xxxxxxxxxxxxxxxxxxxx merge a-branch-with-a-long-name into main
  ada, 2026-01-01 12:09:00, merge: Person ~1 -1
  ~ ada
      bio:
        - "Mathematician"
        + "Wrote the first program ever, for a machine that was never built, an…
id-03-xxxxxxxxxxxxxxxxxxxx
  ada, 2026-01-01 12:06:00, mutate: Person ~2
  ~ ada
      bio:
        - "Wrote the first program, for a machine that was never built, and not…
        + "Mathematician"
id-01-xxxxxxxxxxxxxxxxxxxx people with long lives and a message that is longer …
  ada, 2026-01-01 12:03:00, load: Person +3, Knows +1
  + ada  bio: "Wrote the first program, for a machine that was never built, and…

$ omnigraph query -q -e 'match { $p: Person } return { $p.name, $p.bio, $p.tags, $p.born } order { $p.name }'
p.name                     p.bio                      p.tags              p.born
─────────────────────────  ─────────────────────────  ──────────────────  ──────
ada                        Wrote the first program …  ["math", "poetry"]  null
日本語の名前がとても長い…  many\nlines\tand \x1b[31…  null                null

$ omnigraph query -q -e 'match { $p: Person } return { $p } order { $p.name }'
p
────────────────────────────────────────────────────────────────────────────────
{"@id": "ada", "name": "ada", "bio": "Wrote the first program ever, for a machi…
{"@id": "日本語の名前がとても長い人", "name": "日本語の名前がとても長い人", "bi…

$ omnigraph query -e 'match { $p: Person $p knows{1,3} $f optional { $f knows $g } not { $g knows $p } } return { $p.nam, count($g) as n }'
! error: The query has 2 mistakes.
!   error[T6]: `$g` is bound in an optional block and may be null here
!    --> -e:1:68
!     |
!   1 | …} $f optional { $f knows $g } not { $g knows $p } } return { $p.nam, cou…
!     |                                      ^^
!     = help: put the traversal into a later optional block
!
!   error[T6]: `Person` has no property `nam`
!    --> -e:1:96
!     |
!   1 | … { $f knows $g } not { $g knows $p } } return { $p.nam, count($g) as n }
!     |                                                     ^^^
!     = help: did you mean `name`?
[exit 6]

$ omnigraph entity Person ada
id    "ada"
name  "ada"
bio   "Wrote the first program ever, for a machine that was never built, and notes that are longer than the paper."
tags  ["math", "poetry"]
born  null
