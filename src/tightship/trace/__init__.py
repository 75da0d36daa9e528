"""What was asked of an allocator, recorded: read, played again, and divided for.

events                     a trace, and its file
rmm_log, torch_snapshot    what others record, as traces
replay                     what a memory resource makes of a trace
workload                   how memory is best divided for one
"""
