# Whatever is wrong is told in one sentence, with the right exit code.
@file people.pg
node Person {
    name: String @key
    age: I32?
}
edge Knows: Person -> Person
@end
@file wrong.pg
node Person {
    name: Strng @key
}
edge Knows: Person -> Persn
@end
@file text.txt
nothing
@end
$ omnigraph frobnicate
! error: There is no command 'frobnicate'.
! help: 'omnigraph --help' lists what there is.
[exit 2]

$ omnigraph lgo
! error: There is no command 'lgo'.
! help: Did you mean 'omnigraph log'?
[exit 2]

$ omnigraph branch crate
! error: There is no command 'branch crate'.
! help: Did you mean 'omnigraph branch create'?
[exit 2]

$ omnigraph log
! error: Which graph? No root was given.
! help: Say --root ROOT, set OMNIGRAPH_ROOT, or write root = "..." in omnigraph.toml.
[exit 2]

$ omnigraph --root nowhere.graph log
! error: There is no graph at /here/nowhere.graph.
! help: Create one with 'omnigraph init ROOT --schema FILE', or check the path.
[exit 3]

$ omnigraph log --root http://localhost:8080
! error: http://localhost:8080 names no graph.
! help: Write https://host/graphs/NAME.
[exit 2]

$ omnigraph log --root gopher://x
! error: gopher:// is not a kind of root.
! help: Use a path, file://, s3:// or memory://.
[exit 2]

$ omnigraph log --format tabel
! error: --format cannot be 'tabel'.
! help: Did you mean 'table'?
[exit 2]

$ omnigraph init --schema people.pg
! error: Which graph? No root was given.
! help: Say --root ROOT, set OMNIGRAPH_ROOT, or write root = "..." in omnigraph.toml.
[exit 2]

$ omnigraph init g --schema missing.pg
! error: There is no file missing.pg.
[exit 3]

$ omnigraph init g --schema .
! error: . is a directory, not a file.
[exit 2]

$ omnigraph init g --schema wrong.pg
! error: The schema has 2 mistakes.
!   error[P110]: there is no property type `Strng`
!    --> wrong.pg:2:11
!     |
!   2 |     name: Strng @key
!     |           ^^^^^
!     = expected: String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, Vector(n), enum(a, b) or [Type]
!     = help: did you mean `String`?
!
!   error[P105]: there is no node type `Persn`
!    --> wrong.pg:4:23
!     |
!   4 | edge Knows: Person -> Persn
!     |                       ^^^^^
!     = help: did you mean `Person`?
[exit 6]

$ omnigraph init g
! error: --schema is missing.
! help: See 'omnigraph init --help'.
[exit 2]

$ omnigraph init g --schema people.pg
Created g with 1 node type and 1 edge type.

$ omnigraph init g --schema people.pg
! error: There is a graph at /here/g already.
! help: Choose another root, or use the graph that is there.
[exit 4]

@set OMNIGRAPH_ROOT g
$ omnigraph log --limt 3
! error: Unknown option: --limt. Did you mean --limit?
! help: See 'omnigraph log --help'.
[exit 2]

$ omnigraph log --limit three
! error: Invalid value for --limit: unable to convert "three" into int.
! help: See 'omnigraph log --help'.
[exit 2]

$ omnigraph log --limit
! error: --limit needs a value.
! help: See 'omnigraph log --help'.
[exit 2]

$ omnigraph log --limit -1
! error: The limit of a log is a number of commits, not -1.
[exit 2]

$ omnigraph log main too many
! error: There are too many arguments: too many.
! help: See 'omnigraph log --help'.
[exit 2]

$ omnigraph log mian
! error: There is no branch 'mian'.
! help: Did you mean 'main'?
[exit 3]

$ omnigraph log main~99
! error: 'main~99' goes back further than the history does.
[exit 3]

$ omnigraph log --since yesterday
! error: 'yesterday' is not a time.
! help: Write 2026-01-31 or 2026-01-31T12:00:00Z.
[exit 2]

$ omnigraph show mian
! error: There is no branch 'mian'.
! help: Did you mean 'main'?
[exit 3]

$ omnigraph show 01ARZ3NDEKTSV4RRFFQ69G5FAV
! error: There is no commit id-01-xxxxxxxxxxxxxxxxxxxx.
[exit 3]

$ omnigraph snapshot main*2020-13-01
! error: 'main*2020-13-01' ends in '2020-13-01', which is not a time.
! help: Refs are main, main~2, main@<commit>, main*<time> or a commit id.
[exit 2]

$ omnigraph stats --ref nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph branch create main
! error: The branch 'main' exists already.
[exit 4]

$ omnigraph branch create x --from mian
! error: There is no branch 'mian'.
! help: Did you mean 'main'?
[exit 3]

$ omnigraph branch delete main
! error: The branch 'main' cannot be deleted.
! help: Restore it to an older commit, or delete the whole graph.
[exit 2]

$ omnigraph branch delete nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph branch list now
! error: There are too many arguments: now.
! help: See 'omnigraph branch list --help'.
[exit 2]

$ omnigraph merge nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph merge main
! error: The branch 'main' cannot be merged into itself.
! help: Name the branch to merge from, and the one to merge into.
[exit 2]

$ omnigraph merge main --strategy mine
! error: The strategy 'mine' is not known.
! help: Write ours, theirs, Type=theirs or Type.property=ours.
[exit 2]

$ omnigraph merge main --into
! error: --into needs a value.
! help: See 'omnigraph merge --help'.
[exit 2]

$ omnigraph diff main nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph diff main main --type Persn
! error: There is no type 'Persn'.
! help: Did you mean Person?
[exit 3]

$ omnigraph diff main main --op replace
! error: Invalid value "replace" for --op. Choose from: "insert", "update", "delete".
! help: See 'omnigraph diff --help'.
[exit 2]

$ omnigraph tag create main
! error: The branch 'main' exists already.
[exit 4]

$ omnigraph tag delete nope
! error: There is no tag 'nope'.
[exit 3]

$ omnigraph tag list x
! error: There are too many arguments: x.
! help: See 'omnigraph tag list --help'.
[exit 2]

$ omnigraph changes garbage
! error: There is no branch 'garbage'.
[exit 3]

$ omnigraph changes --poll soon
! error: Invalid value for --poll: unable to convert "soon" into float.
! help: See 'omnigraph changes --help'.
[exit 2]

$ omnigraph entity Person Nobody
! error: There is no Person 'Nobody' at main.
! help: 'omnigraph history Person Nobody' shows whether there was one.
[exit 3]

$ omnigraph entity Prson Ada
! error: There is no type 'Prson'.
! help: Did you mean Person?
[exit 3]

$ omnigraph history Person Nobody
! error: There was never a Person 'Nobody' on main.
[exit 3]

$ omnigraph restore nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph revert main~9
! error: 'main~9' goes back further than the history does.
[exit 3]

$ omnigraph protect nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph unprotect nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph schema show Persn
! error: There is no type 'Persn'.
! help: Did you mean Person?
[exit 3]

$ omnigraph schema plan wrong.pg
! error: The schema has 2 mistakes.
!   error[P110]: there is no property type `Strng`
!    --> wrong.pg:2:11
!     |
!   2 |     name: Strng @key
!     |           ^^^^^
!     = expected: String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, Vector(n), enum(a, b) or [Type]
!     = help: did you mean `String`?
!
!   error[P105]: there is no node type `Persn`
!    --> wrong.pg:4:23
!     |
!   4 | edge Knows: Person -> Persn
!     |                       ^^^^^
!     = help: did you mean `Person`?
[exit 6]

$ omnigraph schema plan missing.pg
! error: There is no file missing.pg.
[exit 3]

$ omnigraph schema apply wrong.pg
! error: The schema has 2 mistakes.
!   error[P110]: there is no property type `Strng`
!    --> wrong.pg:2:11
!     |
!   2 |     name: Strng @key
!     |           ^^^^^
!     = expected: String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, Vector(n), enum(a, b) or [Type]
!     = help: did you mean `String`?
!
!   error[P105]: there is no node type `Persn`
!    --> wrong.pg:4:23
!     |
!   4 | edge Knows: Person -> Persn
!     |                       ^^^^^
!     = help: did you mean `Person`?
[exit 6]

$ omnigraph schema fmt wrong.pg missing.pg
changed wrong.pg
! error: There is no file missing.pg.
[exit 3]

$ omnigraph schema lint wrong.pg
error[P110]: there is no property type `Strng`
 --> wrong.pg:2:11
  |
2 |     name: Strng @key
  |           ^^^^^
  = expected: String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, Vector(n), enum(a, b) or [Type]
  = help: did you mean `String`?

error[P105]: there is no node type `Persn`
 --> wrong.pg:5:23
  |
5 | edge Knows: Person -> Persn
  |                       ^^^^^
  = help: did you mean `Person`?

! 1 file: 2 errors, 0 warnings.
[exit 6]

$ omnigraph schema frm
! error: There is no command 'schema frm'.
! help: 'omnigraph schema --help' lists what there is.
[exit 2]

$ omnigraph lint
! error: Which files? None was given.
[exit 2]

$ omnigraph lint text.txt
! error: text.txt is neither a .gq nor a .pg file.
! help: The end of the name tells which.
[exit 2]

$ omnigraph fmt text.txt
! error: text.txt is neither a .gq nor a .pg file.
! help: The end of the name tells which.
[exit 2]

$ omnigraph version --loud
! error: Unknown option: --loud.
! help: See 'omnigraph version --help'.
[exit 2]

$ omnigraph completion powershell
! error: Invalid value "powershell" for SHELL. Choose from: "bash", "zsh", "fish", "branches".
! help: See 'omnigraph completion --help'.
[exit 2]

# A server is named by its address.
$ omnigraph login ftp://x
! error: ftp://x is no server.
! help: Give its address: https://graphs.example.com.
[exit 2]

$ omnigraph logout nowhere
! error: nowhere is no server.
! help: Give its address: https://graphs.example.com.
[exit 2]

$ omnigraph whoami --root g
! error: g is no server.
! help: Give its address: https://graphs.example.com.
[exit 2]

$ omnigraph web g --port many
! error: Invalid value for --port: unable to convert "many" into int.
! help: See 'omnigraph web --help'.
[exit 2]

# The same for programs.
$ omnigraph entity Prson Ada --json
! {"code": "type_not_found", "error": "There is no type 'Prson'.", "help": "Did you mean Person?", "retryable": false, "exit_code": 3, "kind": "not_found"}
[exit 3]

$ omnigraph init g --schema wrong.pg --json
! {"code": "invalid_schema", "error": "The schema has 2 mistakes.\nerror[P110]: there is no property type `Strng`\n --> wrong.pg:2:11\n  |\n2 |     name: Strng @key\n  |           ^^^^^\n  = expected: String, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Blob, Vector(n), enum(a, b) or [Type]\n  = help: did you mean `String`?\n\nerror[P105]: there is no node type `Persn`\n --> wrong.pg:5:23\n  |\n5 | edge Knows: Person -> Persn\n  |                       ^^^^^\n  = help: did you mean `Person`?\n", "help": "", "retryable": false, "exit_code": 6, "kind": "invalid", "diagnostics": [{"code": "P110", "message": "there is no property type `Strng`", "span": {"start": 24, "end": 29}, "expected": ["String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime", "Blob", "Vector(n)", "enum(a, b)", "[Type]"], "suggestion": "did you mean `String`?"}, {"code": "P105", "message": "there is no node type `Persn`", "span": {"start": 60, "end": 65}, "suggestion": "did you mean `Person`?", "replacement": "Person"}]}
[exit 6]

$ omnigraph --json --format yaml log
! {"code": "invalid_argument", "error": "--format cannot be 'yaml'.", "help": "There are table, json, jsonl, csv, arrow, parquet.", "retryable": false, "exit_code": 2, "kind": "invalid"}
[exit 2]
