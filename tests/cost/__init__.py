"""The cost contract: requests and serial hops of each operation, counted on the wire."""
