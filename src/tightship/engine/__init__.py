"""When things run: a graph lowered, placed, loaded and executed.

    lower, kernels                       steps of a graph; those that run in Python
    program, schedule, placement         a lowered model, as the planner sees it and as it answers
    prepare, memory_plan, footprint      all that happens before loading, and the number it gives
    template, variants, other_shapes     programs for input shapes that come later
    program_cache, shelf                 those that stay
    pack, weight_store                   constants as kernels want them, one copy
    executable, executor, step_graph     a placement made ready, and run
    arenas                               the memory of runs
    stored                               all of it in one file, mapped
    library, primitive_cache             which libdnnl, and what it has compiled

Described in `docs/engine.md`.
"""
