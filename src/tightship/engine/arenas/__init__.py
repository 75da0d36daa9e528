"""Memory that programs run in: whose it is, how much of it stays, and who waits for it.

    arena          a program's view of a block
    arena_pool     rooms of one model, each reserved by one run at a time
    arena_group   rooms that models of one process take in turns
    shared_rooms   rooms that processes take in turns
    booking        what one model's runs have of rooms that are not its own
    retention      how long memory stays that a run needed once
    idle_trimmer     a look at it when no run comes

Described in `docs/explanation/arenas.md`.
"""
