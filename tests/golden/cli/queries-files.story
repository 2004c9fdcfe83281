# Query files are checked against a graph, or against a schema file.
@file people.pg
node Person {
    name: String @key
    age: I32?
}
edge Knows: Person -> Person
@end
@file good.gq
query friends($name: String) {
match { $p: Person { name: $name } $p knows $f }
return { $f.name, $f.age as age } order { age desc } limit 10 }
@end
@file bad.gq
query friends($name: String) {
    match { $p: Prson { name: $name } $p knows $f }
    return { $f.nmae }
}
@end
@file broken.gq
query x( { match
@end
@file warned.gq
query all() { match { $p: Person $q: Person } return { $p.name, $q.name } }
@end
$ omnigraph lint good.gq --schema people.pg
! 1 file: 0 errors, 0 warnings.

$ omnigraph lint good.gq --schema people.pg --json
[
  {"file": "good.gq", "queries": [{"name": "friends", "kind": "read", "parameters": [{"name": "name", "kind": "String", "nullable": false}], "columns": [{"name": "f.name", "kind": "String", "nullable": false}, {"name": "age", "kind": "I32", "nullable": true}], "reads": ["Knows", "Person"], "writes": []}], "diagnostics": []}
]
! 1 file: 0 errors, 0 warnings.

$ omnigraph lint bad.gq --schema people.pg
error[T1]: there is no node type `Prson`
 --> bad.gq:2:17
  |
2 |     match { $p: Prson { name: $name } $p knows $f }
  |                 ^^^^^
  = help: did you mean `Person`?

error[T6]: `Person` has no property `nmae`
 --> bad.gq:3:17
  |
3 |     return { $f.nmae }
  |                 ^^^^
  = help: did you mean `name`?

! 1 file: 2 errors, 0 warnings.
[exit 6]

$ omnigraph lint warned.gq --schema people.pg
warning[L203]: nothing joins `$p` and `$q`: every row of the one meets every row of the other
 --> warned.gq:1:65
  |
1 | query all() { match { $p: Person $q: Person } return { $p.name, $q.name } }
  |                                                                 ^^
  = help: join them by a traversal or an equality

! 1 file: 0 errors, 1 warning.

$ omnigraph lint good.gq
! error: Which graph? No root was given.
! help: Say --root ROOT, set OMNIGRAPH_ROOT, or write root = "..." in omnigraph.toml.
[exit 2]

$ omnigraph fmt --check good.gq
would change good.gq
[exit 1]

$ omnigraph fmt good.gq
changed good.gq

$ omnigraph fmt good.gq bad.gq
changed bad.gq

$ omnigraph fmt broken.gq
! error[Q001]: unexpected `{`
!  --> broken.gq:1:10
!   |
! 1 | query x( { match
!   |          ^
!   = expected: a variable or `)`
!
! error[Q008]: the text ends in the middle of a query
!  --> broken.gq:2:1
!   |
! 2 |
!   | ^
!   = expected: `{`
!
[exit 6]

$ omnigraph fmt -
< match {$p:Person} return{$p}
match {
    $p: Person
}
return { $p }
