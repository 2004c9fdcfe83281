# Files become one commit, or nothing.
@file people.pg
node Person {
    name: String @key
    age: I32?
}
edge Knows: Person -> Person {
    since: Date?
}
@end
@file people.jsonl
{"type": "Person", "data": {"name": "Ada", "age": 36}}
{"type": "Person", "data": {"name": "Bob"}}
{"edge": "Knows", "from": "Ada", "to": "Bob", "data": {"since": "2020-01-31"}}
@end
@file Person.csv
name,age
Ada,37
Eve,20
@end
@file wrong.jsonl
{"type": "Person", "data": {"name": "Joe", "age": "old"}}
{"type": "Person", "data": {"name": "Kim", "age": 3}}
{"type": "Persn", "data": {"name": "Kim"}}
{"edge": "Knows", "from": "Ada", "to": "Nobody"}
nonsense
@end
$ omnigraph init g --schema people.pg
Created g with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT g
$ omnigraph load people.jsonl --as ada -m "first people"
Person  +2
Knows   +1
Loaded into main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph load people.jsonl
! error: 2 values break the rules.
!   key: people.jsonl line 1: Person "Ada" exists already; append adds only what is new. To change it, use upsert, or --mode merge in a load.
!   key: people.jsonl line 2: Person "Bob" exists already; append adds only what is new. To change it, use upsert, or --mode merge in a load.
! help: Nothing was changed.
[exit 6]

$ omnigraph load Person.csv --mode merge --json
{
  "branch": "main",
  "mode": "merge",
  "commit": "id-02-xxxxxxxxxxxxxxxxxxxx",
  "types": {
    "Person": {
      "inserted": 1,
      "updated": 1,
      "deleted": 0
    }
  },
  "repeated": false,
  "rejected": 0,
  "embedded": 0,
  "engine": "local",
  "reason": "about 0 rows, not above 1,000,000",
  "advice": []
}

$ omnigraph load Person.csv --mode merge
Person  ~2
Loaded into main in commit id-03-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph load wrong.jsonl
! error: 3 values break the rules.
!   type: wrong.jsonl line 3: there is no node type "Persn"; did you mean `Person`?
!   json: wrong.jsonl line 5: this is not JSON: Expecting value at column 1.
!   type: wrong.jsonl line 1: `age` of Person must be a whole number from -2147483648 to 2147483647, but it is "old" (str). (id Joe)
! help: Nothing was changed.
[exit 6]

$ omnigraph load wrong.jsonl --json
! {"code": "invalid_data", "error": "wrong.jsonl line 3: there is no node type \"Persn\"; did you mean `Person`? (and 2 more)", "help": "Nothing was changed.", "retryable": false, "source": "wrong.jsonl", "line": 3, "exit_code": 6, "kind": "invalid", "violations": [{"type": "", "rule": "type", "message": "wrong.jsonl line 3: there is no node type \"Persn\"; did you mean `Person`?", "row": 3}, {"type": "", "rule": "json", "message": "wrong.jsonl line 5: this is not JSON: Expecting value at column 1.", "row": 5}, {"type": "Person", "rule": "type", "message": "wrong.jsonl line 1: `age` of Person must be a whole number from -2147483648 to 2147483647, but it is \"old\" (str).", "id": "Joe", "property": "age", "row": 1}], "more": 0}
[exit 6]

$ omnigraph load wrong.jsonl --on-error quarantine --rejected bad.jsonl
Person  +1
Loaded into main in commit id-04-xxxxxxxxxxxxxxxxxxxx.
! 4 rows rejected, see bad.jsonl:
!   wrong.jsonl:3  there is no node type "Persn"; did you mean `Person`?
!   wrong.jsonl:5  this is not JSON: Expecting value at column 1.
!   wrong.jsonl:1  `age` of Person must be a whole number from -2147483648 to 2147483647, but it is "old" (str).
!   wrong.jsonl:4  Knows has `to` "Nobody", but there is no Person with that id.

$ omnigraph load -
< {"type": "Person", "data": {"name": "Pat"}}
Person  +1
Loaded into main in commit id-05-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph load - --branch import --from main
< {"type": "Person", "data": {"name": "Sam"}}
Person  +1
Loaded into import in commit id-06-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph diff main import
node Person
  + Sam

$ omnigraph load
! error: What is to be loaded? No file was given.
[exit 2]

$ omnigraph load missing.jsonl
! error: There is no file missing.jsonl.
[exit 3]

$ omnigraph load *.parquet
! error: No file matches *.parquet.
[exit 2]

$ omnigraph load people.pg
! error: What people.pg holds cannot be told.
! help: Files end in .jsonl, .csv, .parquet or .arrow, JSONL and CSV also in .gz and .zst.
[exit 2]

$ omnigraph load Person.csv --type Prson
! error: There is no type 'Prson'.
! help: Did you mean Person?
[exit 3]

$ omnigraph load Person.csv --mode mrge
! error: Invalid value "mrge" for --mode. Choose from: "append", "merge", "overwrite". Did you mean "merge"?
! help: See 'omnigraph load --help'.
[exit 2]

$ omnigraph load Person.csv --branch nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph load Person.csv --mode merge --if-commit 01ARZ3NDEKTSV4RRFFQ69G5FAV
! error: The branch 'main' is at commit id-05-xxxxxxxxxxxxxxxxxxxx, not at id-07-xxxxxxxxxxxxxxxxxxxx.
! help: Nothing was changed; look at the new commits and give --if-commit again.
[exit 4]

$ omnigraph load Person.csv --mapping missing.toml
! error: There is no file missing.toml.
[exit 3]

$ omnigraph log
id-05-xxxxxxxxxxxxxxxxxxxx (main)
  2026-01-01 12:09:00, load: Person +1
id-04-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:08:00, load: Person +1
id-03-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:05:00, load: Person ~2
id-02-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:04:00, load: Person +1 ~1
id-01-xxxxxxxxxxxxxxxxxxxx first people
  ada, 2026-01-01 12:02:00, load: Person +2, Knows +1
id-08-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:01:00, init

# What comes out goes in again.
$ omnigraph export --quiet
{"type":"Person","data":{"name":"Bob"}}
{"type":"Person","data":{"name":"Ada","age":37}}
{"type":"Person","data":{"name":"Eve","age":20}}
{"type":"Person","data":{"name":"Kim","age":3}}
{"type":"Person","data":{"name":"Pat"}}
{"edge":"Knows","id":"id-09-xxxxxxxxxxxxxxxxxxxx","from":"Ada","to":"Bob","data":{"since":"2020-01-31"}}

$ omnigraph export out.jsonl
Person  5
Knows   1
Exported main to out.jsonl.

$ omnigraph export backup --format csv --json
{"commit": "id-05-xxxxxxxxxxxxxxxxxxxx", "format": "csv", "types": {"Person": 5, "Knows": 1}, "files": ["backup/Person.csv", "backup/Knows.csv"]}

$ omnigraph export --type Person --format csv --ref main~3
"id","name","age"
"Bob","Bob",
"Ada","Ada",37
"Eve","Eve",20
! 3 rows of main~3.

$ omnigraph export --format csv
! error: csv holds one type in a file, but 2 were asked to go to a stream.
! help: Name a directory, or one --type.
[exit 2]

$ omnigraph export --format table
! error: table is not a format that load reads.
! help: Use jsonl, csv, parquet or arrow.
[exit 2]

$ omnigraph export --type Persn
! error: There is no type 'Persn'.
! help: Did you mean Person?
[exit 3]

$ omnigraph export /proc/nowhere/x.jsonl
! error: /proc/nowhere/x.jsonl cannot be written: No such file or directory.
[exit 2]

$ omnigraph export --ref nope
! error: There is no branch 'nope'.
[exit 3]

$ omnigraph init again --schema people.pg
Created again with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT again
$ omnigraph load out.jsonl
Person  +5
Knows   +1
Loaded into main in commit id-10-xxxxxxxxxxxxxxxxxxxx.
