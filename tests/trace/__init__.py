# ruff: noqa: A005  (the folder mirrors `tightship.trace`)
