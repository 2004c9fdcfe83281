"""The rule book: what must hold between the rows of a graph.

`book.py` has every rule, their order and their sentences. `joins.py` finds the rows that break
them, in SQL that every engine speaks. Rules for a single row are in `plan/validate.py`.
"""
