"""Memory that programs run in: ownership, retention and waiting.

    arena          a program's view of a block
    arena_pool     arenas of one model, each reserved by one run at a time
    arena_group   arenas that models of one process take alternately
    shared_rooms   arenas that processes take alternately
    booking        a model's bytes in arenas that it shares, within its budget
    retention      how long idle memory is kept
    idle_trimmer     a thread that gives idle memory back when no run comes

Described in `docs/explanation/arenas.md`.
"""
