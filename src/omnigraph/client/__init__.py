"""The client of a server: a graph behind an address, with the methods of one that is here."""
