# Jobs that a server or a program runs, seen from outside.
@file notes.pg
node Note { text: String }
@end
$ omnigraph init g --schema notes.pg
Created g with 1 node type and 0 edge types.

@set OMNIGRAPH_ROOT g
$ omnigraph jobs list
! There are no jobs.

@file g/__job/01KDVM0000F3HMPGM5NAKXEY7K.json
{"format": 1, "id": "01KDVM0000F3HMPGM5NAKXEY7K", "kind": "verify", "created_at": 1767268800000000, "arguments": {"deep": true}, "actor": "ada"}
@end
@file g/__job/01KDVM0001F3HMPGM5NAKXEY7K.json
{"kind": "shell"}
@end
$ omnigraph jobs list
id-01-xxxxxxxxxxxxxxxxxxxx  unknown, unreadable, 1970-01-01 00:00:00
    __job/id-01-xxxxxxxxxxxxxxxxxxxx.json cannot be read: Invalid enum value 'shell' - at `$.kind`
id-02-xxxxxxxxxxxxxxxxxxxx  verify, queued, ada, 2026-01-01 12:00:00

$ omnigraph jobs show 01KDVM0000F3HMPGM5NAKXEY7K
id-02-xxxxxxxxxxxxxxxxxxxx  verify, queued, ada, 2026-01-01 12:00:00

$ omnigraph jobs cancel 01KDVM0000F3HMPGM5NAKXEY7K --as bob
It is cancelled.

$ omnigraph jobs list --json
[
  {"id": "id-01-xxxxxxxxxxxxxxxxxxxx", "kind": "unknown", "state": "unreadable", "arguments": {}, "actor": null, "created_at": 0, "heartbeat": null, "run": 0, "done": 0, "total": null, "doing": "", "cancelling": false, "result": null, "problem": {"error": "__job/id-01-xxxxxxxxxxxxxxxxxxxx.json cannot be read: Invalid enum value 'shell' - at `$.kind`"}},
  {"id": "id-02-xxxxxxxxxxxxxxxxxxxx", "kind": "verify", "state": "cancelled", "arguments": {"deep": true}, "actor": "ada", "created_at": 1767268800000000, "heartbeat": null, "run": 0, "done": 0, "total": null, "doing": "", "cancelling": true, "result": null, "problem": null}
]

$ omnigraph jobs cancel 01KDVM0000F3HMPGM5NAKXEY7K
! error: The job id-02-xxxxxxxxxxxxxxxxxxxx has ended: it is cancelled.
! help: Look at it with g.jobs.get(id), or `omnigraph jobs show`; submit a new one.
[exit 4]

$ omnigraph jobs show 01KDVM0002F3HMPGM5NAKXEY7K
! error: There is no job id-03-xxxxxxxxxxxxxxxxxxxx.
! help: List them with g.jobs.list(), or `omnigraph jobs list`.
[exit 3]

$ omnigraph jobs cancel nothing
! error: 'nothing' is not the id of a job.
! help: List them with g.jobs.list(), or `omnigraph jobs list`.
[exit 3]

$ omnigraph jobs list --root nowhere
! error: There is no graph at /here/nowhere.
! help: Create one with 'omnigraph init ROOT --schema FILE', or check the path.
[exit 3]
