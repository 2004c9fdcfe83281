# What happens now: heads, commits a minute, folds, operations and jobs.
@file people.pg
node Person { name: String @key }
@end
$ omnigraph init g --schema people.pg
Created g with 1 node type and 0 edge types.

@set OMNIGRAPH_ROOT g
$ omnigraph mutate --as ada -e 'insert Person { name: "Ada" }'
Person  +1
Changed main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph branch create side
Created side from main at commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph top
/here/g

Branch  Head                        Age    By   A minute  Folded
main    id-01-xxxxxxxxxxxxxxxxxxxx  2 min  ada  0
side    id-01-xxxxxxxxxxxxxxxxxxxx  2 min  ada  0

No long operation and no job is under way.

$ omnigraph mutate --branch side --as eve -e 'insert Person { name: "Eve" }'
Person  +1
Changed side in commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph optimize --quiet
There is nothing to do.

@python
g.jobs.submit("optimize", actor="ada")
@end
$ omnigraph top --once
/here/g

Branch  Head                        Age    By   A minute  Folded
main    id-01-xxxxxxxxxxxxxxxxxxxx  6 min  ada  0
side    id-02-xxxxxxxxxxxxxxxxxxxx  3 min  eve  0

Jobs
  id-03-xxxxxxxxxxxxxxxxxxxx  optimize, queued, ada

$ omnigraph top --json
{
  "root": "/here/g",
  "branches": [
    {
      "branch": "main",
      "commit": "id-01-xxxxxxxxxxxxxxxxxxxx",
      "kind": "mutate",
      "actor": "ada",
      "age": 420.0,
      "commits_a_minute": 0,
      "folded": null
    },
    {
      "branch": "side",
      "commit": "id-02-xxxxxxxxxxxxxxxxxxxx",
      "kind": "mutate",
      "actor": "eve",
      "age": 240.0,
      "commits_a_minute": 0,
      "folded": null
    }
  ],
  "operations": [],
  "jobs": [
    {
      "id": "id-03-xxxxxxxxxxxxxxxxxxxx",
      "kind": "optimize",
      "state": "queued",
      "arguments": {},
      "actor": "ada",
      "created_at": 1767269220000000,
      "heartbeat": null,
      "run": 0,
      "done": 0,
      "total": null,
      "doing": "",
      "cancelling": false,
      "result": null,
      "problem": null
    }
  ]
}

$ omnigraph top --interval 0
! error: The interval is at least 0.2 seconds, not 0.
[exit 2]

$ omnigraph top --root nowhere.graph
! error: There is no graph at /here/nowhere.graph.
! help: Create one with 'omnigraph init ROOT --schema FILE', or check the path.
[exit 3]
