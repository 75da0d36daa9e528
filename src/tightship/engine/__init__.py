"""When things run: a graph lowered, placed, loaded and executed.

    kernels, lower                       steps of a graph; those that run in Python
    program                              a lowered model: steps, slots, weights
    weights                              constants as kernels want them, one copy
    plan                                 where each byte lies, and the number a load is held to
    run, arenas                          a program executed, and the memory of runs
    compile                              all that happens before loading
    template, cache                      programs for input shapes that come later, and which stay
    stored                               all of it in one file, mapped
    library, primitive_cache             which libdnnl, and what it has compiled

Described in `docs/explanation/lowering.md` and `docs/explanation/running.md`.
"""
