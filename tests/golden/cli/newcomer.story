# What somebody types who has never seen this program.
@file people.pg
node Person {
    name: String @key
    age: I32?
}
edge Knows: Person -> Person
@end
@file people.jsonl
{"type": "Person", "data": {"name": "Ada", "age": 36}}
{"type": "Person", "data": {"name": "Alan", "age": 41}}
{"edge": "Knows", "from": "Ada", "to": "Alan"}
@end
$ omnigraph --hepl
! error: Unknown option: --hepl.
! help: Did you mean --help?
[exit 2]

$ omnigraph --verison
! error: Unknown option: --verison.
! help: Did you mean --version?
[exit 2]

$ omnigraph --frobnicate
! error: Unknown option: --frobnicate.
! help: 'omnigraph --help' lists what there is.
[exit 2]

$ omnigraph help lgo
! error: There is no command 'lgo'.
! help: Did you mean 'omnigraph log'?
[exit 2]

$ omnigraph create people.graph
! error: There is no command 'create'.
! help: 'omnigraph init' creates a graph, 'omnigraph branch create' a branch.
[exit 2]

$ omnigraph init people.pg --schema people.pg
! error: /here/people.pg is a file, and a graph is a directory.
[exit 2]

$ omnigraph init people.pg/deeper --schema people.pg
! error: /here/people.pg is a file, and a graph is a directory.
[exit 2]

$ omnigraph init '' --schema people.pg
! error: The root is empty.
! help: Give a path, s3://bucket/prefix or file://.
[exit 2]

$ omnigraph init people.graph --schema people.pg
Created people.graph with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT people.graph
$ omnigraph stats --fromat json
! error: Unknown option: --fromat. Did you mean --format?
! help: See 'omnigraph stats --help'.
[exit 2]

$ omnigraph stats --root ''
! error: The root is empty.
! help: Give a path, s3://bucket/prefix or file://.
[exit 2]

$ omnigraph import people.jsonl
! error: There is no command 'import'.
! help: 'omnigraph load' brings files in.
[exit 2]

$ omnigraph load people.graph
! error: people.graph is a graph, not a directory of files to load.
! help: Export it first, or merge a branch of it.
[exit 2]

$ omnigraph load people.jsonl
Person  +2
Knows   +1
Loaded into main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph insert
! error: There is no command 'insert'.
! help: Write 'omnigraph mutate -e "insert …"'.
[exit 2]

$ omnigraph checkout review
! error: There is no command 'checkout'.
! help: There is none to check out: say --branch NAME to any command.
[exit 2]

$ omnigraph serve
! error: There is no graph to serve.
! help: Say omnigraph serve ROOT, or write [server.graphs] in omnigraph.toml.
[exit 2]

$ omnigraph ls
! error: There is no command 'ls'.
! help: 'omnigraph stats' shows what is in the graph.
[exit 2]

$ omnigraph branch review
! error: There is no command 'branch review'.
! help: Did you mean 'omnigraph branch create review'?
[exit 2]

$ omnigraph tag v1
! error: There is no command 'tag v1'.
! help: Did you mean 'omnigraph tag create v1'?
[exit 2]

$ omnigraph branch --list
! error: Unknown option: --list.
! help: 'omnigraph branch --help' lists what there is.
[exit 2]

$ omnigraph query -e 'match { $p: Person { name: $n } } return { $p.age }' --param n=Ada
! error: The query has 1 mistake.
!   error[T6]: `$n` is neither bound nor a parameter
!    --> -e:1:28
!     |
!   1 | match { $p: Person { name: $n } } return { $p.age }
!     |                            ^^
! help: Declare it: query name($n: String) { … }.
[exit 6]

$ omnigraph query -e 'query one($n: String) { match { $p: Person { name: $n } } return { $p.age } }' --param m=Ada
! error: The parameters do not fit: $n is missing, and it must be a String; $m is no parameter of this query.
[exit 6]

$ omnigraph query -e 'query one($n: String) { match { $p: Person { name: $n } } return { $p.age } }' --param n=Ada --quiet
p.age
─────
   36

$ omnigraph export out.csv
! error: csv holds one type in a file, but 2 were asked to go to the file out.csv.
! help: Name a directory, or one --type.
[exit 2]

$ omnigraph export out.xyz
! error: The end of out.xyz does not tell a format.
! help: Say --format jsonl, csv, parquet or arrow, or end the name in one of them.
[exit 2]

$ omnigraph export out
Person  2
Knows   1
Exported main to out/graph.jsonl.

$ omnigraph export out/Person.csv --type Person
Person  2
Exported main to out/Person.csv.

$ omnigraph export out/ --format parquet
Person  2
Knows   1
Exported main to out/, 2 files.

$ omnigraph export people.pg/x.jsonl
! error: people.pg/x.jsonl cannot be written: File exists.
[exit 2]

$ omnigraph load people.jsonl --mode merge --on-error quarantine --rejected nowhere/bad.jsonl
! error: nowhere/bad.jsonl cannot be written: No such file or directory.
[exit 2]

$ omnigraph load people.jsonl --mode merge --on-error quarantine --rejected out
! error: out is a directory, not a file.
[exit 2]

$ omnigraph log --since yesterday
! error: 'yesterday' is not a time.
! help: Write 2026-01-31 or 2026-01-31T12:00:00Z.
[exit 2]

$ omnigraph cleanup --older-than soon
! error: --older-than 'soon' is not a duration.
! help: Write 7d, 12h, 30m, 90s or 2w.
[exit 2]

$ omnigraph revert main --as ada
Reverted id-01-xxxxxxxxxxxxxxxxxxxx in commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph log --oneline
id-02-xxxxxxxxxxxxxxxxxxxx (main) revert id-01-xxxxxxxxxxxxxxxxxxxx
id-01-xxxxxxxxxxxxxxxxxxxx
id-03-xxxxxxxxxxxxxxxxxxxx

$ omnigraph recover resume 7
! error: '7' is not the id of an operation.
! help: List them with 'omnigraph recover list'.
[exit 2]

$ omnigraph recover discard 01ARZ3NDEKTSV4RRFFQ69G5FAV
! error: There is no operation id-04-xxxxxxxxxxxxxxxxxxxx: it has ended, or never was.
! help: List them with 'omnigraph recover list'.
[exit 3]

$ omnigraph stats --format csv
type,kind,entities,fragments,table_version
Person,node,0,0,3
Knows,edge,0,0,3

$ omnigraph snapshot --format jsonl
{"ref": "main", "branch": "main", "version": 3, "commit": "id-02-xxxxxxxxxxxxxxxxxxxx", "schema": "d3e3641ecf429815398e916749987eeb5dabf5b15ed4a325e89c17bcc160c405", "types": [{"type": "Person", "kind": "node", "entities": 0, "fragments": 0, "table_version": 3}, {"type": "Knows", "kind": "edge", "entities": 0, "fragments": 0, "table_version": 3}]}
