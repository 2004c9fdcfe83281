# Questions, at any ref, in any format.
@file people.pg
node Person {
    name: String @key
    age: I32?
    born: Date?
    seen: DateTime?
}
node Company {
    name: String @key
}
edge Knows: Person -> Person {
    since: I32?
}
edge WorksAt: Person -> Company
@end
@file data.jsonl
{"type": "Person", "data": {"name": "Alice", "age": 30, "born": "1996-02-29", "seen": "2026-01-01T10:00:00Z"}}
{"type": "Person", "data": {"name": "Bob", "age": 25}}
{"type": "Person", "data": {"name": "Charlie", "age": 35}}
{"type": "Person", "data": {"name": "Diana", "age": 28}}
{"type": "Company", "data": {"name": "Acme"}}
{"type": "Company", "data": {"name": "Globex"}}
{"edge": "Knows", "from": "Alice", "to": "Bob"}
{"edge": "Knows", "from": "Alice", "to": "Charlie", "data": {"since": 2020}}
{"edge": "Knows", "from": "Bob", "to": "Diana"}
{"edge": "WorksAt", "from": "Alice", "to": "Acme"}
{"edge": "WorksAt", "from": "Bob", "to": "Globex"}
@end
@file queries.gq
query friends($name: String, $hops: I32 = 1) {
    match { $p: Person { name: $name } $p knows $f }
    return { $f.name, $f.age } order { $f.name }
}

query idle() {
    match { $p: Person not { $p worksAt $_ } }
    return { $p.name } order { $p.name }
}
@end
$ omnigraph init g --schema people.pg
Created g with 2 node types and 2 edge types.

@set OMNIGRAPH_ROOT g
$ omnigraph load data.jsonl
Person   +4
Company  +2
Knows    +3
WorksAt  +2
Loaded into main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph query queries.gq friends --param name=Alice --quiet
f.name   f.age
───────  ─────
Bob         25
Charlie     35

$ omnigraph query queries.gq friends --params '{"name": "Bob"}' --json
[
  {"f.name": "Diana", "f.age": 28}
]

$ omnigraph query queries.gq idle --format csv
p.name
Charlie
Diana

$ omnigraph query --format jsonl -e 'match { $p: Person {name: "Alice"} optional { $p worksAt $c } } return { $p, $c.name as works, $p.born, $p.seen }'
{"p": {"@id": "Alice", "name": "Alice", "age": 30, "born": "1996-02-29", "seen": "2026-01-01T10:00:00Z"}, "works": "Acme", "p.born": "1996-02-29", "p.seen": "2026-01-01T10:00:00Z"}

$ omnigraph query -q -e 'match { $p: Person optional { $p worksAt $c } } return { $p.name as name, $p.age as age, $c.name as works } order { name }'
name     age  works
───────  ───  ──────
Alice     30  Acme
Bob       25  Globex
Charlie   35  null
Diana     28  null

$ omnigraph query -q -e 'match { $p: Person $p knows $f } return { $p.name as who, count($f) as n } order { n desc }'
who    n
─────  ─
Alice  2
Bob    1

$ omnigraph query -q - idle
< query idle() { match { $p: Person } return { count($p) as people } }
people
──────
     4

$ omnigraph query -q -e 'match { $p: Person } return { count($p) as n }' --ref main~1
n
─
0

$ omnigraph query -q -e 'match { $p: Person { name: "Nobody" } } return { $p.name }'
p.name
──────

$ omnigraph query -e 'match { $p: Person { name: "Nobody" } } return { $p.name }' --format csv
p.name

$ omnigraph query
! error: Which query? Give a file, or the text with -e.
[exit 2]

$ omnigraph query queries.gq -e 'match'
! error: Give a file or -e, not both.
[exit 2]

$ omnigraph query missing.gq
! error: There is no file missing.gq.
[exit 3]

$ omnigraph query queries.gq
! error: The query has 1 mistake.
!   error[Q013]: the text holds 2 queries, and none is named
!    --> queries.gq:1:1
!     |
!   1 | query friends($name: String, $hops: I32 = 1) {
!     | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ … to line 9
!     = help: name one of friends, idle
[exit 6]

$ omnigraph query queries.gq freinds
! error: The query has 1 mistake.
!   error[Q013]: there is no query `freinds`
!    --> queries.gq:1:1
!     |
!   1 | query friends($name: String, $hops: I32 = 1) {
!     | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ … to line 9
!     = help: did you mean `friends`?
[exit 6]

$ omnigraph query queries.gq friends
! error: The parameters do not fit: $name is missing, and it must be a String.
[exit 6]

$ omnigraph query queries.gq friends --param nme=Alice
! error: The parameters do not fit: $name is missing, and it must be a String; $nme is no parameter of this query (did you mean `$name`?).
[exit 6]

$ omnigraph query queries.gq friends --param Alice
! error: --param 'Alice' is not name=value.
! help: Write --param name=Ada.
[exit 2]

$ omnigraph query queries.gq friends --params nonsense
! error: --params is not JSON: Expecting value: line 1 column 1 (char 0).
! help: Write --params '{"name": "Ada"}'.
[exit 2]

$ omnigraph query queries.gq friends --params '[1]'
! error: --params is not an object.
! help: Write {"name": "Ada"}.
[exit 2]

$ omnigraph query -e 'match { $p: Prson } return { $p.name }'
! error: The query has 1 mistake.
!   error[T1]: there is no node type `Prson`
!    --> -e:1:13
!     |
!   1 | match { $p: Prson } return { $p.name }
!     |             ^^^^^
!     = help: did you mean `Person`?
[exit 6]

$ omnigraph query -e 'match { $p: Prson } return { $p.name }' --json
! {"code": "invalid_query", "error": "The query has 1 mistake.\nerror[T1]: there is no node type `Prson`\n --> -e:1:13\n  |\n1 | match { $p: Prson } return { $p.name }\n  |             ^^^^^\n  = help: did you mean `Person`?\n", "help": "", "retryable": false, "exit_code": 6, "kind": "invalid", "diagnostics": [{"code": "T1", "message": "there is no node type `Prson`", "span": {"start": 12, "end": 17}, "suggestion": "did you mean `Person`?", "replacement": "Person"}]}
[exit 6]

$ omnigraph query -e 'match { $p: Person } return { $p.name }' --ref nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph query -e 'match { $p: Person } return { $p.name }' --memory-limit lots
! error: 'lots' is not a size.
! help: Write 500MB, 2GB or a number of bytes.
[exit 2]

$ omnigraph query -e 'match { $p: Person } return { $p.name }' --timeout 0
! error: The timeout 0.0 is not above zero.
[exit 2]

$ omnigraph query -e 'insert Person { name: "Eve" }'
! error: This is a mutation, and 'query' only reads.
! help: Use 'omnigraph mutate'.
[exit 2]

$ omnigraph explain queries.gq frends
! error: The query has 1 mistake.
!   error[Q013]: there is no query `frends`
!    --> queries.gq:1:1
!     |
!   1 | query friends($name: String, $hops: I32 = 1) {
!     | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ … to line 9
!     = help: did you mean `friends`?
[exit 6]

$ omnigraph search alice
Person Alice  name
    Alice

$ omnigraph search Acme --type Company --format jsonl
{"type": "Company", "id": "Acme", "score": 0.016666666666666666, "property": "name", "passage": "**Acme**"}

$ omnigraph search nobody alice
Person Alice  name
    Alice

$ omnigraph search nobody
Nothing at main has any of these words.
Words are compared whole; `fuzzy` in a query finds misspelt ones.

$ omnigraph search " " ""
! error: There are no words to look for.
[exit 2]

$ omnigraph search alice --type Persn
! error: There is no type 'Persn'.
! help: Did you mean Person?
[exit 3]

$ omnigraph search alice --near
! error: No property of these types is embedded, so nothing can be found by meaning.
! help: Say @embed("source") of a Vector property in the schema, or search by words.
[exit 2]
