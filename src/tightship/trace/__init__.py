"""Works with recorded allocations: reads traces, replays them, and divides memory for them.

events                     traces, and the files that hold them
rmm_log, torch_snapshot    recordings of RMM and PyTorch, read as traces
replay                     peaks and times of a memory resource that serves a trace
workload                   the division of memory that suits a trace best
"""
