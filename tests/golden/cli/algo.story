# Ranks, groups and distances, printed or written as properties.
@file people.pg
node Person {
    name: String @key
    rank: F64?
    circle: String?
    hops: I64?
}
node Club {
    title: String @key
    circle: String?
}
edge Knows: Person -> Person {
    since: I32?
}
edge Joined: Person -> Club
@end
@file data.jsonl
{"type": "Person", "data": {"name": "ada"}}
{"type": "Person", "data": {"name": "bob"}}
{"type": "Person", "data": {"name": "cy"}}
{"type": "Person", "data": {"name": "dan"}}
{"type": "Person", "data": {"name": "eve"}}
{"type": "Club", "data": {"title": "chess"}}
{"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": 1999}}
{"edge": "Knows", "from": "bob", "to": "cy", "data": {"since": 2005}}
{"edge": "Knows", "from": "cy", "to": "ada", "data": {"since": 2010}}
{"edge": "Knows", "from": "dan", "to": "ada", "data": {"since": 2020}}
{"edge": "Joined", "from": "eve", "to": "chess"}
@end
$ omnigraph init g --schema people.pg
Created g with 2 node types and 2 edge types.

@set OMNIGRAPH_ROOT g
$ omnigraph load data.jsonl
Person  +5
Club    +1
Knows   +4
Joined  +1
Loaded into main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph algo degrees --edges Knows --quiet
type    id   value
──────  ───  ─────
Person  ada      3
Person  bob      2
Person  cy       2
Person  dan      1
Person  eve      0

$ omnigraph algo degrees --edges Knows --direction in -n 2 --format csv
type,id,value
Person,ada,2
Person,bob,1

$ omnigraph algo shortest_paths --source ada --edges Knows --format jsonl
{"type": "Person", "id": "ada", "value": 0}
{"type": "Person", "id": "bob", "value": 1}
{"type": "Person", "id": "cy", "value": 2}
{"type": "Person", "id": "dan", "value": null}
{"type": "Person", "id": "eve", "value": null}

$ omnigraph algo shortest-paths --source Person:eve --edges Knows:both --edges Joined:out --quiet
type    id     value
──────  ─────  ─────
Person  eve        0
Club    chess      1
Person  ada     null
Person  bob     null
Person  cy      null
Person  dan     null

$ omnigraph algo connected_components --json
[
  {"type": "Club", "id": "chess", "value": "Club:chess"},
  {"type": "Person", "id": "eve", "value": "Club:chess"},
  {"type": "Person", "id": "ada", "value": "Person:ada"},
  {"type": "Person", "id": "bob", "value": "Person:ada"},
  {"type": "Person", "id": "cy", "value": "Person:ada"},
  {"type": "Person", "id": "dan", "value": "Person:ada"}
]

$ omnigraph algo degrees --edges Knows --where 'since >= 2005' --quiet
type    id   value
──────  ───  ─────
Person  ada      2
Person  cy       2
Person  bob      1
Person  dan      1
Person  eve      0

$ omnigraph algo triangle_count --where 'Person: name != "dan"' --edges Knows --quiet
type    id   value
──────  ───  ─────
Person  ada      1
Person  bob      1
Person  cy       1
Person  eve      0

$ omnigraph algo label_propagation --edges Knows --rounds 3 --format csv
type,id,value
Person,ada,ada
Person,bob,ada
Person,cy,ada
Person,dan,ada
Person,eve,eve

$ omnigraph branch create try
Created try from main at commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph algo connected_components --write-to circle --branch try --as ada
Wrote connected_components of 6 nodes to circle on try in commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph query --branch try -q -e 'match { $p: Person } return { $p.name, $p.circle } order { $p.name }'
p.name  p.circle
──────  ──────────
ada     Person:ada
bob     Person:ada
cy      Person:ada
dan     Person:ada
eve     Club:chess

$ omnigraph log try -n 1 --format jsonl
{"commit": "id-02-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-01-xxxxxxxxxxxxxxxxxxxx"], "kind": "write", "actor": "ada", "message": "connected_components into circle", "created_at": "2026-01-01T12:12:00Z", "labels": ["try"], "statistics": {"Club": {"updated": 1}, "Person": {"updated": 5}}}

$ omnigraph algo pagerank --edges Knows --write-to rank --json
{
  "algorithm": "pagerank",
  "property": "rank",
  "branch": "main",
  "nodes": 5,
  "rounds": 136,
  "engine": "local",
  "commit": "id-03-xxxxxxxxxxxxxxxxxxxx"
}

# What cannot be done.
$ omnigraph algo pagerang
! error: There is no algorithm 'pagerang'.
! help: Did you mean 'pagerank'?
[exit 2]

$ omnigraph algo
! error: NAME is missing.
! help: See 'omnigraph algo --help'.
[exit 2]

$ omnigraph algo degrees --edges Know
! error: There is no edge type 'Know'.
! help: Did you mean Knows?
[exit 3]

$ omnigraph algo degrees --edges Knows:up
! error: The direction of Knows is 'out', 'in' or 'both', not 'up'.
[exit 2]

$ omnigraph algo degrees --edges Knows:in --edges Joined
! error: --edges Joined has no direction, and others have one.
! help: Write --edges Joined:both, or say --direction for those without.
[exit 2]

$ omnigraph algo degrees --damping 0.5
! error: degrees has no option 'damping'.
! help: Its options: none.
[exit 2]

$ omnigraph algo pagerank --damping 2
! error: `damping` is a share from 0 to below 1, not 2.0.
[exit 2]

$ omnigraph algo triangle_count --direction in
! error: triangle_count follows edges both ways, whatever they point to.
[exit 2]

$ omnigraph algo shortest_paths --edges Knows
! error: `shortest_paths` needs `sources`, the ids of one or more nodes.
! help: Say sources='…', or on the command line --source ID.
[exit 2]

$ omnigraph algo shortest_paths --edges Knows --source zed
! error: There is no node 'zed' among the nodes of these edges.
[exit 3]

$ omnigraph algo degrees --where 'since > 2000'
! error: The condition 'since > 2000' does not say which edges it is about: Joined, Knows.
! help: Say of which type: where={'Joined': 'since > 2000'}, or on the command line --where 'Joined: since > 2000'.
[exit 2]

$ omnigraph algo degrees --edges Knows --where 'sinc > 2000'
! error: The condition 'sinc > 2000' does not fit Knows: `Knows` has no property `sinc`.
! help: Did you mean `since`?
[exit 6]

$ omnigraph algo degrees --where 'Knos: since > 2000'
! error: The condition of 'Knos' is about none of the types that take part.
! help: Did you mean 'Knows'?
[exit 2]

$ omnigraph algo degrees --where 'Knows: since > 2000' --where 'true'
! error: --where 'true' does not say of which type.
! help: Write --where 'Knows: since >= 2000'.
[exit 2]

$ omnigraph algo pagerank --edges Knows --write-to score
! error: Person has no property 'score' to write pagerank to.
! help: Add it to the schema first: `score: F64?`.
[exit 2]

$ omnigraph algo pagerank --edges Knows --write-to circle
! error: `circle` of Person is String, but pagerank gives F64 or F32.
[exit 2]

$ omnigraph algo degrees --edges Knows --ref tyr
! error: There is no branch 'tyr'.
! help: Did you mean 'try'?
[exit 3]

$ omnigraph algo degrees --engine local --master 'local[2]'
! error: --master is for Spark, and --engine local does not use it.
! help: Leave --master out, or say --engine spark.
[exit 2]

$ omnigraph algo degrees --conf driver.memory=8g
! error: --conf 'driver.memory=8g' is not a setting of Spark.
! help: Write --conf spark.driver.memory=8g.
[exit 2]

$ omnigraph algo degrees --engine sprk
! error: Invalid value "sprk" for --engine. Choose from: "auto", "local", "spark". Did you mean "spark"?
! help: See 'omnigraph algo --help'.
[exit 2]
