"""Prepared models: programs, plans and packed weights in one file that is mapped read-only.

    save       writes programs and weights to a file, whole or not at all
    container  header, checksums and sections of a file
    model      an opened file: what it was made for, its plans and programs

The form of a file is described in `docs/reference/file-formats.md`.
"""
