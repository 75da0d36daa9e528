"""Engine: lowers, places, loads and executes a graph.

    kernels, lower              lowering of a graph to steps; steps that run in Python
    program                     the lowered model: steps, slots, weights
    weights                     constants packed into layouts of kernels, one copy for all programs
    plan                        offsets of operands in the arena, and the memory plan of a load
    run, arenas                 execution of a program, and the memory that runs use
    compile                     all work before loading
    template, cache             programs for input shapes known later, and a bounded cache of them
    stored                      a compiled model in one file, mapped on load
    library, primitive_cache    the libdnnl in use, and the primitives that it compiled

Described in `docs/explanation/lowering.md` and `docs/explanation/running.md`.
"""
