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
