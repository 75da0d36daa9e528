"""Prepared models: programs, plans and packed weights in one file that is mapped read-only.

    save       programs and weights to a file, which is there whole or not at all
    container  header, checksums, and where the parts of a file are
    model      a file opened: what it was made for, its plans and programs

The form of a file is described in `docs/reference/file-formats.md`.
"""
