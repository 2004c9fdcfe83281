# Answers that are too large to read: a summary first, a few examples, and the way to the rest.
@file packages.pg
node Package {
    name: String @key
    version: String?
    tags: String?
    size: F32?
}
@end
$ omnigraph init packages.graph --schema packages.pg
Created packages.graph with 1 node type and 0 edge types.

@set OMNIGRAPH_ROOT packages.graph
@python
g.load([{"name": f"p{n:04}", "version": "1", "tags": "a", "size": n / 10} for n in range(1200)], type="Package", message="import")
g.create_branch("updates")
g.branch("updates").mutate('update Package set { version: "2" } where true', message="new versions")
g.branch("updates").mutate('update Package set { tags: "t" } where size < 30', message="new tags")
@end
@python
g.optimize()
g.mutate('update Package set { version: "3", tags: "u" } where true', message="by hand")
g.optimize()
@end
$ omnigraph query -e 'match { $p: Package } return { $p.name } order { $p.name }' --limit 2 --format jsonl -q
{"p.name": "p0000"}
{"p.name": "p0001"}

$ omnigraph log --format jsonl --limit 2
{"commit": "id-01-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-02-xxxxxxxxxxxxxxxxxxxx"], "kind": "mutate", "actor": null, "message": "by hand", "created_at": "2026-01-01T12:03:00.000001Z", "labels": ["main"], "statistics": {"Package": {"updated": 1200}}}
{"commit": "id-03-xxxxxxxxxxxxxxxxxxxx", "parents": ["id-04-xxxxxxxxxxxxxxxxxxxx"], "kind": "load", "actor": null, "message": "import", "created_at": "2026-01-01T12:02:00Z", "labels": [], "statistics": {"Package": {"inserted": 1200}}}

@terminal 80
$ omnigraph merge updates
! 1,500 conflicts stopped the merge of updates into main.
!
!   Package.version  1,200
!   Package.tags       300
!
! DivergentUpdate Package p0000 version
!   Package 'p0000' was changed by both in version: '3' (ours), '2' (theirs).
!     before   "1"
!     main     "3"
!     updates  "2"
!
! DivergentUpdate Package p0000 tags
!   Package 'p0000' was changed by both in tags: 'u' (ours), 't' (theirs).
!     before   "a"
!     main     "u"
!     updates  "t"
!
! … 1,498 more conflicts; --json shows all
!
! To go on
!   omnigraph merge updates --strategy theirs
!       updates wins everywhere
!   omnigraph merge updates --strategy ours
!       main wins everywhere
!   omnigraph merge updates --strategy Package.version=theirs --strategy Package.tags=theirs
!       group by group
!   omnigraph merge updates --resolve FILE
!       entity by entity
!   or change one of the branches and merge again.
!
! Nothing was changed.
[exit 4]

$ omnigraph diff main~1 main
Package  ~1,200
    changed: version 1,200 · tags 1,200

node Package
  ~ p0000
      version: "1" → "3"
      tags: "a" → "u"
  ~ p0001
      version: "1" → "3"
      tags: "a" → "u"
  ~ p0002
      version: "1" → "3"
      tags: "a" → "u"
  … 1,197 more entities

--limit 100 shows that many of each type, --format jsonl all

$ omnigraph diff main~1 main --limit 1
node Package
  ~ p0000
      version: "1" → "3"
      tags: "a" → "u"
  … 1,199 more entities

$ omnigraph query -e 'match { $p: Package } return { $p.name, $p.size } order { $p.name }' -q
p.name  p.size
──────  ──────
p0000      0.0
p0001      0.1
p0002      0.2
p0003      0.3
p0004      0.4
p0005      0.5
p0006      0.6
p0007      0.7
p0008      0.8
p0009      0.9
p0010      1.0
p0011      1.1
p0012      1.2
p0013      1.3
p0014      1.4
p0015      1.5
p0016      1.6
p0017      1.7
… 1,182 more (--limit, --format jsonl)

$ omnigraph query -e 'match { $p: Package } return { $p.name } order { $p.name }' --limit 2 -q
p.name
──────
p0000
p0001
… 1,198 more (--limit, --format jsonl)

$ omnigraph query -e 'match { $p: Package } return { $p.name } order { $p.name }' --limit -1 -q
! error: --limit -1 is below zero.
[exit 2]

$ omnigraph log --oneline
id-01-xxxxxxxxxxxxxxxxxxxx (main) by hand
id-03-xxxxxxxxxxxxxxxxxxxx import
id-04-xxxxxxxxxxxxxxxxxxxx
! 2 commits of maintenance not shown (--maintenance)

$ omnigraph log --oneline --limit 1
id-01-xxxxxxxxxxxxxxxxxxxx (main) by hand
! 1 commit of maintenance not shown (--maintenance)

$ omnigraph log --oneline --maintenance
id-05-xxxxxxxxxxxxxxxxxxxx (main)
id-01-xxxxxxxxxxxxxxxxxxxx by hand
id-02-xxxxxxxxxxxxxxxxxxxx
id-03-xxxxxxxxxxxxxxxxxxxx import
id-04-xxxxxxxxxxxxxxxxxxxx

$ omnigraph log --graph --all --oneline
● id-01-xxxxxxxxxxxxxxxxxxxx (main) by hand
│ ● id-06-xxxxxxxxxxxxxxxxxxxx (updates) new tags
│ ● id-07-xxxxxxxxxxxxxxxxxxxx new versions
├─╯
● id-03-xxxxxxxxxxxxxxxxxxxx import
● id-04-xxxxxxxxxxxxxxxxxxxx
! 2 commits of maintenance not shown (--maintenance)

$ omnigraph log --kind optimize --oneline
id-05-xxxxxxxxxxxxxxxxxxxx (main)
id-02-xxxxxxxxxxxxxxxxxxxx

# What is two steps back, in the log and as a ref.
$ omnigraph show main~2 --summary
commit id-04-xxxxxxxxxxxxxxxxxxxx
time   2026-01-01 12:01:00 UTC
kind   init
