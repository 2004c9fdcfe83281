"""Frozen values: types, schemas, catalogs, identities, refs and graph versions. No I/O."""
