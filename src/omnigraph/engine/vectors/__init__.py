"""Embedding rows whose vectors are missing: which rows wait, how models are asked, how results are
committed."""
