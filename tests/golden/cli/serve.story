# What keeps a server from starting is told before it begins.
$ omnigraph serve
! error: There is no graph to serve.
! help: Say omnigraph serve ROOT, or write [server.graphs] in omnigraph.toml.
[exit 2]

$ omnigraph serve people.graph --bind 0.0.0.0:8470
! error: 0.0.0.0:8470 can be reached from other machines, and nobody would have to say who they are.
! help: Bind to 127.0.0.1, or give it tokens: [server.auth].
[exit 2]

$ omnigraph serve one=people.graph two=people.graph
! error: The graphs one and two have one root, people.graph.
[exit 2]
