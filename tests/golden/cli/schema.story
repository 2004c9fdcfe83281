# A schema is changed: planned first, checked against the data, applied as one commit.
@file one.pg
node Person {
    name: String @key
    age: I32?
    nick: String?
}
edge Knows: Person -> Person
@end
@file two.pg
node Human @rename_from("Person") {
    name: String @key
    age: I64?
    email: String?
    @range(age, 0..150)
}
edge Knows: Human -> Human
node Company { name: String @key }
@end
@file strict.pg
node Person {
    name: String @key
    age: I32
    nick: String?
}
edge Knows: Person -> Person
@end
@file impossible.pg
node Person {
    name: String
    age: Bool?
    nick: String @key
}
edge Knows: Person -> Person
@end
@file messy.pg
node   Person { name : String @key , age: I32? @index, nick: String? /* who */ }
edge Knows: Person->Person @card(0..)
@end
$ omnigraph init g --schema one.pg
Created g with 1 node type and 1 edge type.

@set OMNIGRAPH_ROOT g
@python
with g.transaction() as tx:
    tx.append("Person", [{"name": "Ada", "age": 36}, {"name": "Bob"}, {"name": "Eve"}])
@end
$ omnigraph schema show
node Person {
    name: String @key
    age: I32?
    nick: String?
}
edge Knows: Person -> Person

$ omnigraph schema plan one.pg
Nothing to change.

$ omnigraph schema plan two.pg
6 steps: 4 safe, 1 validated, 1 destructive.

safe         OG-SC-102  rename node type Person to Human
                        only the catalog changes; data and history stay
                        reachable

safe         OG-SC-101  add node type Company with 1 property
                        a new type has no entities, so there is nothing to check
                        or to rewrite

destructive  OG-DS-102  drop property Human.nick
                        its values leave the graph; history keeps them unless
                        data loss is allowed

safe         OG-SC-106  widen Human.age from I32 to I64
                        the column is rewritten; every value stays the same
                        number

safe         OG-SC-104  add property Human.email: String?
                        existing entities read null; nothing is rewritten

validated    OG-MF-102  add @range(age, 0..150) to Human
                        values outside the range would break it and are looked
                        for first

$ omnigraph schema plan impossible.pg
3 steps: 1 validated, 2 unsupported. Nothing will be applied.

unsupported  OG-UN-101  property Person.age
                        I32 cannot become Bool: only numbers can be widened, to
                        a type that holds every value they may have
                        Instead: add a property with the new type, fill it, then
                        drop this one.

validated    OG-MF-105  make Person.nick required
                        entities without a value would break it, so they are
                        looked for first

unsupported  OG-UN-103  node type Person
                        ids come from the key, so the ids of all existing
                        entities would change
                        Instead: add a new type with the key you want, move the
                        entities, then drop this one.
[exit 6]

$ omnigraph schema plan strict.pg --json
{
  "steps": [
    {
      "step": "change_nullability",
      "type": "node:Person",
      "reason": "entities without a value would break it, so they are looked for first",
      "tier": "validated",
      "id": "67f85294c0539392",
      "property": "age",
      "column": "age",
      "nullable": false,
      "code": "OG-MF-105",
      "text": "make Person.age required"
    }
  ],
  "notes": [],
  "broken_queries": [],
  "can_be_applied": true,
  "is_destructive": false
}

$ omnigraph schema apply impossible.pg
! 3 steps: 1 validated, 2 unsupported. Nothing will be applied.
!
! unsupported  OG-UN-101  property Person.age
!                         I32 cannot become Bool: only numbers can be widened, to
!                         a type that holds every value they may have
!                         Instead: add a property with the new type, fill it, then
!                         drop this one.
!
! validated    OG-MF-105  make Person.nick required
!                         entities without a value would break it, so they are
!                         looked for first
!
! unsupported  OG-UN-103  node type Person
!                         ids come from the key, so the ids of all existing
!                         entities would change
!                         Instead: add a new type with the key you want, move the
!                         entities, then drop this one.
! error: OG-UN-101: I32 cannot become Bool: only numbers can be widened, to a type that holds every value they may have (and 1 more)
! help: add a property with the new type, fill it, then drop this one
[exit 6]

$ omnigraph schema apply strict.pg
! 1 step: 1 validated.
!
! validated    OG-MF-105  make Person.age required
!                         entities without a value would break it, so they are
!                         looked for first
! error: 2 values break the rules.
!   required: `age` of Person is required, but it is null. (id Bob)
!   required: `age` of Person is required, but it is null. (id Eve)
! help: Nothing was changed.
[exit 6]

$ omnigraph schema apply two.pg --dry-run
6 steps: 4 safe, 1 validated, 1 destructive.

safe         OG-SC-102  rename node type Person to Human
                        only the catalog changes; data and history stay
                        reachable

safe         OG-SC-101  add node type Company with 1 property
                        a new type has no entities, so there is nothing to check
                        or to rewrite

destructive  OG-DS-102  drop property Human.nick
                        its values leave the graph; history keeps them unless
                        data loss is allowed

safe         OG-SC-106  widen Human.age from I32 to I64
                        the column is rewritten; every value stays the same
                        number

safe         OG-SC-104  add property Human.email: String?
                        existing entities read null; nothing is rewritten

validated    OG-MF-102  add @range(age, 0..150) to Human
                        values outside the range would break it and are looked
                        for first

$ omnigraph schema apply two.pg
! 6 steps: 4 safe, 1 validated, 1 destructive.
!
! safe         OG-SC-102  rename node type Person to Human
!                         only the catalog changes; data and history stay
!                         reachable
!
! safe         OG-SC-101  add node type Company with 1 property
!                         a new type has no entities, so there is nothing to check
!                         or to rewrite
!
! destructive  OG-DS-102  drop property Human.nick
!                         its values leave the graph; history keeps them unless
!                         data loss is allowed
!
! safe         OG-SC-106  widen Human.age from I32 to I64
!                         the column is rewritten; every value stays the same
!                         number
!
! safe         OG-SC-104  add property Human.email: String?
!                         existing entities read null; nothing is rewritten
!
! validated    OG-MF-102  add @range(age, 0..150) to Human
!                         values outside the range would break it and are looked
!                         for first
! error: 1 of these steps hides data.
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph schema apply two.pg --yes --as ada -m "people are human" --quiet
Applied to main in commit id-01-xxxxxxxxxxxxxxxxxxxx.

$ omnigraph schema apply two.pg --json
{
  "applied": false,
  "commit": null,
  "branch": "main"
}

$ omnigraph diff main~1
schema rename node type Person to Human
schema add node type Company with 1 property
schema drop property Human.nick
schema widen Human.age from I32 to I64
schema add property Human.email: String?
schema add @range(age, 0..150) to Human

$ omnigraph schema show Human
node Human {
    name: String @key
    age: I64?
    email: String?
    @range(age, 0..150)
}

$ omnigraph schema lint messy.pg
warning[L108]: every edge type has the cardinality `0..`
 --> messy.pg:2:28
  |
2 | edge Knows: Person->Person @card(0..)
  |                            ^^^^^^^^^^
  = help: leave `@card` out

! 1 file: 0 errors, 1 warning.

$ omnigraph schema lint messy.pg --json
[
  {"file": "messy.pg", "queries": [], "diagnostics": [{"code": "L108", "severity": "warning", "message": "every edge type has the cardinality `0..`", "path": "messy.pg", "span": {"start": 108, "end": 118}, "start": {"line": 2, "column": 28}, "end": {"line": 2, "column": 38}, "expected": [], "suggestion": "leave `@card` out"}]}
]
! 1 file: 0 errors, 1 warning.

$ omnigraph schema fmt --check messy.pg
would change messy.pg
[exit 1]

$ omnigraph schema fmt messy.pg
changed messy.pg

$ omnigraph schema fmt messy.pg
! Nothing to change.

$ omnigraph fmt messy.pg
! Nothing to change.

$ omnigraph schema fmt -
< node X{a:String}
node X {
    a: String
}

# A type is shown with the interfaces that it shares.
@file named.pg
interface Named {
    name: String
}
node Thing implements Named {
    size: I32?
}
@end
$ omnigraph init named --schema named.pg
Created named with 1 node type and 0 edge types.

$ omnigraph schema show Thing --root named
interface Named {
    name: String
}

node Thing implements Named {
    size: I32?
}

@file less.pg
node Human {
    name: String @key
}
@end
$ omnigraph schema apply less.pg --allow-data-loss --quiet
! error: 4 of these steps delete data. Cleanup will take every older version of main.
! help: Nothing was changed; add --yes to go on.
[exit 2]

$ omnigraph schema apply less.pg --allow-data-loss --yes --quiet
Applied to main in commit id-02-xxxxxxxxxxxxxxxxxxxx.
Cleanup takes the older versions of main once the grace period is over.
