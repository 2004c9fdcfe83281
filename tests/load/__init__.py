"""Loading, exporting and blobs: whole graphs in and out."""
