# An agent looks around, asks a wrong question, mends it, writes on its own branch; a person reviews.
> schema {}
  node Person (2) -- somebody we know
    name: String key  e.g. "Ada", "Bob"
    age: I32? -- in years  e.g. 35
  edge Knows: Person -> Person (1) as $a knows $b
  {
   "ref": "main",
   "commit": "id-01-xxxxxxxxxxxxxxxxxxxx"
  }

> language {}
  (the card)
  {}

> query {"query": "MATCH (p:Person)-[:KNOWS]->(f) RETURN f.name"}
  [error]
  {
   "diagnostics": [
    {
     "code": "Q001",
     "severity": "error",
     "message": "unexpected `MATCH`",
     "start": {
      "line": 1,
      "column": 1
     },
     "end": {
      "line": 1,
      "column": 6
     },
     "expected": [
      "`query`",
      "`match`",
      "`insert`",
      "`update`",
      "`delete`",
      "`branch`",
      "`explain`",
      "the end of the text"
     ],
     "suggestion": "did you mean `match`?"
    },
    {
     "code": "Q001",
     "severity": "error",
     "message": "unexpected `(`",
     "start": {
      "line": 1,
      "column": 7
     },
     "end": {
      "line": 1,
      "column": 8
     },
     "expected": [
      "`{`"
     ],
     "suggestion": null
    }
   ],
   "code": "invalid_query",
   "error": "The query has 2 mistakes.\nerror[Q001]: unexpected `MATCH`\n --> query:1:1\n  |\n1 | MATCH (p:Person)-[:KNOWS]->(f) RETURN f.name\n  | ^^^^^\n  = expected: `query`, `match`, `insert`, `update`, `delete`, `branch`, `explain` or the end of the text\n  = help: did you mean `match`?\n\nerror[Q001]: unexpected `(`\n --> query:1:7\n  |\n1 | MATCH (p:Person)-[:KNOWS]->(f) RETURN f.name\n  |       ^\n  = expected: `{`\n",
   "help": "The tool language shows on one page how a query is written, with examples.",
   "retryable": false,
   "corrected": null
  }

> query {"query": "match { $p: Persn { name: \"Ada\" } $p knows $f } retrun { $f.nme }"}
  [error]
  {
   "diagnostics": [
    {
     "code": "Q001",
     "severity": "error",
     "message": "unexpected `retrun`",
     "start": {
      "line": 1,
      "column": 49
     },
     "end": {
      "line": 1,
      "column": 55
     },
     "expected": [
      "`return`"
     ],
     "suggestion": "did you mean `return`?"
    }
   ],
   "code": "invalid_query",
   "error": "The query has 1 mistake.\nerror[Q001]: unexpected `retrun`\n --> query:1:49\n  |\n1 | match { $p: Persn { name: \"Ada\" } $p knows $f } retrun { $f.nme }\n  |                                                 ^^^^^^\n  = expected: `return`\n  = help: did you mean `return`?\n",
   "help": "Call it again with the text in `corrected`, if that is what you mean.",
   "retryable": false,
   "corrected": "match { $p: Person { name: \"Ada\" } $p knows $f } return { $f.name }"
  }

> query {"query": "match { $p: Person { name: \"Ada\" } $p knows $f } return { $f.name }"}
  {
   "columns": [
    {
     "name": "f.name",
     "type": "String",
     "nullable": false
    }
   ],
   "rows": [
    {
     "f.name": "Bob"
    }
   ],
   "ref": "main",
   "commit": "id-01-xxxxxxxxxxxxxxxxxxxx",
   "row_count": 1,
   "truncated": false,
   "cursor": null,
   "note": null
  }

> check {"text": "match { $p: Person } return { $p.agee }"}
  {
   "ok": false,
   "diagnostics": [
    {
     "code": "T6",
     "severity": "error",
     "message": "`Person` has no property `agee`",
     "start": {
      "line": 1,
      "column": 34
     },
     "end": {
      "line": 1,
      "column": 38
     },
     "expected": [],
     "suggestion": "did you mean `age`?"
    }
   ],
   "corrected": "match { $p: Person } return { $p.age }",
   "queries": []
  }

> mutat {}
  [error]
  {
   "code": "not_found",
   "error": "There is no tool 'mutat'.",
   "help": "Did you mean 'mutate'?",
   "retryable": false
  }

> query {"text": "match"}
  [error]
  {
   "code": "invalid_argument",
   "error": "The arguments of query do not fit: Object contains unknown field `text`.",
   "help": "It takes query, name, params, ref, limit, cursor.",
   "retryable": false
  }

> mutate {"query": "insert Person { name: \"Zoe\", age: \"ten\" }", "message": "Zoe was missing"}
  [error]
  {
   "diagnostics": [
    {
     "code": "T3",
     "severity": "error",
     "message": "the value does not fit `age`, `I32`: I32 takes whole numbers",
     "start": {
      "line": 1,
      "column": 35
     },
     "end": {
      "line": 1,
      "column": 40
     },
     "expected": [],
     "suggestion": null
    }
   ],
   "code": "invalid_query",
   "error": "The query has 1 mistake.\nerror[T3]: the value does not fit `age`, `I32`: I32 takes whole numbers\n --> query:1:35\n  |\n1 | insert Person { name: \"Zoe\", age: \"ten\" }\n  |                                   ^^^^^\n",
   "help": "The tool schema shows types, properties and edges.",
   "retryable": false,
   "corrected": null
  }

> mutate {"query": "insert Knows { from: \"Ada\", to: \"Zoe\" }", "message": "they met"}
  [error]
  {
   "violations": [
    {
     "type": "Knows",
     "rule": "endpoint",
     "message": "Knows has `to` \"Zoe\", but there is no Person with that id.",
     "id": "id-02-xxxxxxxxxxxxxxxxxxxx",
     "property": "to",
     "value": "\"Zoe\""
    }
   ],
   "more": 0,
   "code": "invalid_data",
   "error": "Knows has `to` \"Zoe\", but there is no Person with that id.",
   "help": "Nothing was changed. Insert the node as well, in the same text, or load the nodes first.",
   "retryable": false
  }

> mutate {"query": "insert Person { name: \"Zoe\", age: 10 } insert Knows { from: \"Ada\", to: \"Zoe\" }", "message": "Zoe was missing", "branch": "main"}
  [error]
  {
   "action": "mutate",
   "resource": "branch 'main'",
   "policies": [],
   "code": "denied",
   "error": "'eve' may not mutate: branch 'main'.",
   "help": "The tools that are listed are what you may use. Leave `branch` out, and what you write goes to your own branch, where somebody reviews it.",
   "retryable": false
  }

> mutate {"query": "insert Person { name: \"Zoe\", age: 10 } insert Knows { from: \"Ada\", to: \"Zoe\" }", "message": "Zoe was missing"}
  {
   "branch": "agent/eve",
   "commit": "id-03-xxxxxxxxxxxxxxxxxxxx",
   "counts": {
    "Person": {
     "inserted": 1,
     "updated": 0,
     "deleted": 0
    },
    "Knows": {
     "inserted": 1,
     "updated": 0,
     "deleted": 0
    }
   },
   "repeated": false,
   "note": "It is on agent/eve: read it with ref \"agent/eve\". It comes to main by a review."
  }

> mutate {"query": "update Person set { age: 37 } where name = \"Ada\"", "message": "a birthday", "idempotency_key": "birthday"}
  {
   "branch": "agent/eve",
   "commit": "id-04-xxxxxxxxxxxxxxxxxxxx",
   "counts": {
    "Person": {
     "inserted": 0,
     "updated": 1,
     "deleted": 0
    }
   },
   "repeated": false,
   "note": "It is on agent/eve: read it with ref \"agent/eve\". It comes to main by a review."
  }

> mutate {"query": "update Person set { age: 37 } where name = \"Ada\"", "message": "a birthday", "idempotency_key": "birthday"}
  {
   "branch": "agent/eve",
   "commit": "id-04-xxxxxxxxxxxxxxxxxxxx",
   "counts": {
    "Person": {
     "inserted": 0,
     "updated": 1,
     "deleted": 0
    }
   },
   "repeated": true,
   "note": "It is on agent/eve: read it with ref \"agent/eve\". It comes to main by a review."
  }

> entity {"type": "Person", "id": "Zoe"}
  [error]
  {
   "code": "entity_not_found",
   "error": "There is no Person 'Zoe' at main.",
   "help": "Its id is its key, or the id that it was given: find it with query or search. What you wrote is on your own branch: give that as ref.",
   "retryable": false
  }

> entity {"type": "Person", "id": "Zoe", "ref": "agent/eve", "blame": true}
  {
   "entity": {
    "id": "Zoe",
    "name": "Zoe",
    "age": 10
   },
   "origins": [
    {
     "property": "name",
     "value": "Zoe",
     "commit": {
      "commit": "id-03-xxxxxxxxxxxxxxxxxxxx",
      "parents": [
       "id-01-xxxxxxxxxxxxxxxxxxxx"
      ],
      "kind": "mutate",
      "actor": "eve",
      "message": "Zoe was missing",
      "created_at": "TIME",
      "labels": [],
      "statistics": {
       "Person": {
        "inserted": 1
       },
       "Knows": {
        "inserted": 1
       }
      },
      "operation": "id-05-xxxxxxxxxxxxxxxxxxxx",
      "tables": {
       "node:Person": {
        "inserted": 1,
        "bytes": …
       },
       "edge:Knows": {
        "inserted": 1,
        "bytes": …
       }
      }
     }
    },
    {
     "property": "age",
     "value": 10,
     "commit": {
      "commit": "id-03-xxxxxxxxxxxxxxxxxxxx",
      "parents": [
       "id-01-xxxxxxxxxxxxxxxxxxxx"
      ],
      "kind": "mutate",
      "actor": "eve",
      "message": "Zoe was missing",
      "created_at": "TIME",
      "labels": [],
      "statistics": {
       "Person": {
        "inserted": 1
       },
       "Knows": {
        "inserted": 1
       }
      },
      "operation": "id-05-xxxxxxxxxxxxxxxxxxxx",
      "tables": {
       "node:Person": {
        "inserted": 1,
        "bytes": …
       },
       "edge:Knows": {
        "inserted": 1,
        "bytes": …
       }
      }
     }
    }
   ],
   "commit": "id-04-xxxxxxxxxxxxxxxxxxxx"
  }

> merge_preview {}
  {
   "merge": {
    "outcome": "fast_forward",
    "source": "agent/eve",
    "into": "main",
    "commit": null,
    "dry_run": true,
    "base": "id-01-xxxxxxxxxxxxxxxxxxxx",
    "adopted": [],
    "changes": {
     "Person": {
      "insert": 1,
      "update": 1
     },
     "Knows": {
      "insert": 1
     }
    },
    "queries": [],
    "conflicts": []
   }
  }

$ omnigraph review agent/eve
  id-03-xxxxxxxxxxxxxxxxxxxx Zoe was missing
    eve, TIME, mutate: Person +1, Knows +1
    node Person
      + Zoe  age: 10

    edge Knows
      + id-06-xxxxxxxxxxxxxxxxxxxx (Ada → Zoe)

  id-04-xxxxxxxxxxxxxxxxxxxx a birthday
    eve, TIME, mutate: Person ~1
    node Person
      ~ Ada
          age: 35 → 37

  Merged into main it would bring:
    Person  +1 ~1
    Knows   +1

$ omnigraph mutate --as ada -m "I know better" -e 'update Person set { age: 36 } where name = "Ada"'
  Person  ~1
  Changed main in commit id-07-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph review agent/eve
  id-03-xxxxxxxxxxxxxxxxxxxx Zoe was missing
    eve, TIME, mutate: Person +1, Knows +1
    node Person
      + Zoe  age: 10

    edge Knows
      + id-06-xxxxxxxxxxxxxxxxxxxx (Ada → Zoe)

  id-04-xxxxxxxxxxxxxxxxxxxx a birthday
    eve, TIME, mutate: Person ~1
    node Person
      ~ Ada
          age: 35 → 37

  1 conflict with main:

  DivergentUpdate Person Ada age
    Person 'Ada' was changed by both in age: 36 (ours), 37 (theirs).
      before     35
      main       36
      agent/eve  37

  Settle it: --merge with --strategy ours or theirs, or with --resolve FILE.

$ omnigraph review agent/eve --merge --strategy ours --as ada -m "Zoe is welcome, the birthday is not"
  Merged agent/eve into main in commit id-08-xxxxxxxxxxxxxxxxxxxx:
    Person  +1
    Knows  as in agent/eve: main has not changed it

> query {"query": "match { $p: Person } return { $p.name, $p.age } order { $p.name }"}
  {
   "columns": [
    {
     "name": "p.name",
     "type": "String",
     "nullable": false
    },
    {
     "name": "p.age",
     "type": "I32",
     "nullable": true
    }
   ],
   "rows": [
    {
     "p.name": "Ada",
     "p.age": 36
    },
    {
     "p.name": "Bob",
     "p.age": null
    },
    {
     "p.name": "Zoe",
     "p.age": 10
    }
   ],
   "ref": "main",
   "commit": "id-08-xxxxxxxxxxxxxxxxxxxx",
   "row_count": 3,
   "truncated": false,
   "cursor": null,
   "note": null
  }

> log {"limit": 3}
  {
   "items": [
    {
     "commit": "id-08-xxxxxxxxxxxxxxxxxxxx",
     "parents": [
      "id-07-xxxxxxxxxxxxxxxxxxxx",
      "id-04-xxxxxxxxxxxxxxxxxxxx"
     ],
     "kind": "merge",
     "actor": "ada",
     "message": "Zoe is welcome, the birthday is not",
     "created_at": "TIME",
     "labels": [],
     "statistics": {
      "Person": {
       "inserted": 1
      }
     }
    },
    {
     "commit": "id-07-xxxxxxxxxxxxxxxxxxxx",
     "parents": [
      "id-01-xxxxxxxxxxxxxxxxxxxx"
     ],
     "kind": "mutate",
     "actor": "ada",
     "message": "I know better",
     "created_at": "TIME",
     "labels": [],
     "statistics": {
      "Person": {
       "updated": 1
      }
     }
    },
    {
     "commit": "id-04-xxxxxxxxxxxxxxxxxxxx",
     "parents": [
      "id-03-xxxxxxxxxxxxxxxxxxxx"
     ],
     "kind": "mutate",
     "actor": "eve",
     "message": "a birthday",
     "created_at": "TIME",
     "labels": [],
     "statistics": {
      "Person": {
       "updated": 1
      }
     }
    }
   ],
   "truncated": true,
   "cursor": "CURSOR",
   "note": null
  }

> merge {"source": "agent/eve", "message": "me too"}
  [error]
  {
   "code": "not_found",
   "error": "You cannot merge here.",
   "help": "Somebody reviews your branch and merges it; merge_preview shows what that does.",
   "retryable": false
  }
