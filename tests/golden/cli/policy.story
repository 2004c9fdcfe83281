# Tokens for actors, and policies that say what they may do.
@set OMNIGRAPH_SERVER_TOKENS tokens.json
$ omnigraph token create ada --role writer --graph papers --expires 90d
token-01

$ omnigraph token create bot --role agent --group bots --json
{
  "id": "known-as-04",
  "actor": "bot",
  "token": "token-03",
  "expires": null
}

$ omnigraph token list
known-as-02  ada: writer on papers, until 2026-04-01 12:01:00
known-as-04  bot: agent, group bots

$ omnigraph token list --tokens nowhere.json
! error: The tokens in nowhere.json cannot be read: No such file or directory.
[exit 2]

$ omnigraph token create a/b --role writer
! error: 'a/b' is no actor.
! help: An actor is a name of printable letters, without '/'.
[exit 2]

$ omnigraph token create eve --role king
! error: There is no role 'king'.
! help: There are reader, writer, agent, maintainer, admin.
[exit 2]

$ omnigraph token create eve --role reader --expires soon
! error: expires 'soon' is not a duration.
! help: Write 7d, 12h, 30m, 90s or 2w.
[exit 2]

$ omnigraph token revoke token-01
Revoked known-as-02 of ada.

$ omnigraph token revoke token-01
! error: There is no token 'known-as-02' in tokens.json.
! help: `omnigraph token list` shows them.
[exit 3]

$ omnigraph token list --json
[
  {"id": "known-as-04", "actor": "bot", "roles": ["agent"], "groups": ["bots"], "graphs": null, "expires": null}
]

@file papers.pg
node Paper {
    title: String @key
    level: I32
}
node Draft {
    title: String @key
}
@end
$ omnigraph init papers.graph --schema papers.pg
Created papers.graph with 2 node types and 0 edge types.

@set OMNIGRAPH_ROOT papers.graph
$ omnigraph mutate -e 'insert Paper { title: "Open", level: 1 } insert Paper { title: "Closed", level: 5 }'
Paper  +2
Changed main in commit id-05-xxxxxxxxxxxxxxxxxxxx.

@file papers.cedar
@id("staff")
permit (principal in Group::"staff", action, resource);
@id("main")
permit (principal, action == Action::"read", resource == Branch::"papers/main");
@id("low")
permit (principal, action == Action::"see", resource is papers::Paper) when { resource.level < 3 };
@end
@file groups.toml
staff = ["ada"]
@end
$ omnigraph policy check --policy papers.cedar --groups groups.toml
3 policies hold for papers.

$ omnigraph policy check
! error: Which policies?
! help: Say --policy FILE, or a directory of them.
[exit 2]

$ omnigraph policy explain ada mutate branch:main -p papers.cedar --groups groups.toml
ada may mutate branch:main
  by staff

$ omnigraph policy explain eve mutate branch:main -p papers.cedar --groups groups.toml
eve may not mutate branch:main
  by no policy

$ omnigraph policy explain eve see type:Paper -p papers.cedar --groups groups.toml --json
{
  "allowed": true,
  "policies": [],
  "rows": "some"
}

$ omnigraph policy explain eve see type:Draft -p papers.cedar --groups groups.toml
eve may not see type:Draft
  rows: none

$ omnigraph policy explain eve fly -p papers.cedar
! error: 'fly' is not asked of branch:main.
! help: There are read, query, export, mutate, load, schema_apply, queries_edit, branch_create, branch_delete, merge, tag, restore, protect.
[exit 2]

$ omnigraph policy explain eve read star:main -p papers.cedar
! error: 'star:main' is no resource.
! help: There are graph, server, branch:NAME, type:NAME and query:NAME.
[exit 2]

@file cases.toml
[[case]]
actor = "eve"
action = "read"
allowed = true

[[case]]
actor = "eve"
action = "see"
resource = "type:Paper"
shows = ["Open"]
@end
$ omnigraph policy test cases.toml -p papers.cedar --groups groups.toml
right  eve read branch:main
right  eve see type:Paper
2 of 2 are right.

@file wrong.toml
[[case]]
actor = "eve"
action = "mutate"
allowed = true

[[case]]
actor = "eve"
groups = ["staff"]
action = "see"
resource = "type:Paper"
shows = ["Open"]
@end
$ omnigraph policy test wrong.toml -p papers.cedar --groups groups.toml
wrong  eve mutate branch:main: denied, by no policy
wrong  eve see type:Paper: shows Closed, Open
0 of 2 are right.
[exit 6]

@file wrong.cedar
@id("sum")
permit (principal, action, resource is papers::Paper) when { resource.level + 1 > 3 };
@id("typo")
permit (principal, action, resource is papers::Papre);
@end
$ omnigraph policy check --policy wrong.cedar
! error: The policies do not hold together.
!     typo: for policy `policy1`, unrecognized entity type `papers::Papre`
!     typo: for policy `policy1`, unable to find an applicable action given the policy scope constraints
!     sum: something is worked out of what the row holds; a condition on rows uses && || ! == != < <= in like has contains
[exit 6]

$ omnigraph policy check --policy groups.toml
! error: groups.toml is no policy that Cedar can read: unexpected token `=`
[exit 6]
