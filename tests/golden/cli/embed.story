# Vectors of texts, by the model that needs no network, and what a paid one asks first.
@file papers.pg
node Paper {
    title: String @key
    abstract: String?
    v: Vector(64)? @embed("abstract")
}
node Letter {
    name: String @key
    text: String?
    v: Vector(8)? @embed("text", model="openai:small")
}
node Odd {
    name: String @key
    v: Vector(8)? @embed("name", model="tiny")
}
@end
@file rows.jsonl
{"type": "Paper", "data": {"title": "Foxes", "abstract": "How foxes hunt in snow"}}
{"type": "Paper", "data": {"title": "Rates", "abstract": "Why interest rates rise"}}
{"type": "Paper", "data": {"title": "Blank", "abstract": ""}}
{"type": "Letter", "data": {"name": "one", "text": "Dear reader"}}
@end
$ omnigraph init g --schema papers.pg
Created g with 3 node types and 0 edge types.

@set OMNIGRAPH_ROOT g
$ omnigraph load rows.jsonl
Paper   +3
Letter  +1
Loaded into main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph embed Paper --dry-run
Paper.v: 2 texts, about 12 tokens wait for local:wordllama

$ omnigraph search animals --near --type Paper
Nothing that is searched at main has a vector; 'omnigraph embed' makes them.

$ omnigraph embed Paper.v -m "vectors" --as ada
Paper.v: 2 of 2 texts, about 12 tokens, by local:wordllama
Embedded into main in commit id-02-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph embed Paper
Paper.v: nothing waits (local:wordllama)
No commit was made.

$ omnigraph mutate -e 'update Paper set { abstract: "How foxes sleep" } where title = "Foxes"'
Paper  ~1
Changed main in commit id-03-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph embed Paper --dry-run --json
{
  "branch": "main",
  "dry_run": true,
  "texts": 1,
  "tokens": 4,
  "embedded": 0,
  "refused": 0,
  "properties": [
    {
      "type": "Paper",
      "property": "v",
      "source": "abstract",
      "model": "local:wordllama",
      "paid": false,
      "texts": 1,
      "tokens": 4,
      "embedded": 0,
      "refusals": 0,
      "refused": []
    }
  ],
  "commits": [],
  "repeated": false
}

$ omnigraph embed Paper --one-commit
Paper.v: 1 of 1 text, about 4 tokens, by local:wordllama
Embedded into main in commit id-04-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph mutate -e 'update Paper set { abstract: "How bears sleep" } where title = "Foxes"' --embed
Paper  ~1
Changed main in commit id-05-xxxxxxxxxxxxxxxxxxxx.
1 text embedded in it.

$ omnigraph load rows.jsonl --mode merge --embed
! error: The rows are in commit id-06-xxxxxxxxxxxxxxxxxxxx, but not all of their texts are embedded: The model openai:small needs a key.
! help: Do not load again: g.embed(), or `omnigraph embed`, does the rest.
[exit 1]

# A paid model is shown first, and needs a yes.
$ omnigraph embed Letter --dry-run
Letter.v: 1 text, about 3 tokens wait for openai:small

$ omnigraph embed Letter
! error: 1 text (about 3 tokens) will be sent to openai:small.
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph embed Letter --yes
! error: The model openai:small needs a key.
! help: Set OMNIGRAPH_EMBED_KEY or OPENAI_API_KEY; or OMNIGRAPH_EMBED_URL, for another endpoint.
[exit 1]

# What cannot be.
$ omnigraph embed
! error: There is no model 'tiny', by which `v` is embedded.
! help: Models are 'local' (in this process, offline; also what a missing name means) and 'openai:<name>' (any endpoint that is compatible). Name one in the schema: @embed("...", model="...").
[exit 6]

$ omnigraph embed Paper.abstract
! error: Paper.abstract is not embedded from another property.
! help: Say so in the schema: abstract: Vector(256)? @embed("text").
[exit 2]

$ omnigraph embed Paper.
! error: 'Paper.' is neither a type nor a property.
! help: Write Paper, or Paper.v.
[exit 2]

$ omnigraph embed Papers
! error: There is no type 'Papers'.
! help: Did you mean Paper?
[exit 3]

$ omnigraph embed Paper --limit -1
! error: `limit` is a number from 0 on, not -1.
[exit 2]

$ omnigraph log --limit 3
id-07-xxxxxxxxxxxxxxxxxxxx (main)
  2026-01-01 12:11:00, embed: Paper ~1
id-06-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:11:00, load: Paper ~3, Letter ~1
id-05-xxxxxxxxxxxxxxxxxxxx
  2026-01-01 12:10:00, mutate: Paper ~1
