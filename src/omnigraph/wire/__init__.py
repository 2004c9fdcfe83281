"""Forms of HTTP that the server and its client share."""
