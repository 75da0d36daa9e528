/// OpenMP functions that the bundled oneDNN and our own kernels call.
///
/// They are functions of libgomp with names of our own, so that no other runtime in the process
/// takes their place: `omp_get_thread_num` is `tsm_get_thread_num`, `GOMP_barrier` is
/// `TSMP_barrier`.
#pragma once

#include <cstdint>

extern "C" {

/// Runs `call(data, ticket)` once for each ticket in [0, count), on up to as many threads.
void tsm_run(int count, void (*call)(void *data, int ticket), void *data);

void TSMP_parallel_start(void (*function)(void *data), void *data, unsigned count);
void TSMP_parallel_end();
void TSMP_parallel(void (*function)(void *data), void *data, unsigned count, unsigned flags);
void TSMP_barrier();

bool TSMP_loop_static_start(long start, long stop, long step, long chunk, long *first, long *last);
bool TSMP_loop_static_next(long *first, long *last);
void TSMP_loop_end_nowait();

void tsm_set_num_threads(int count);
int tsm_get_max_threads();

/// Sets whether each ticket of the calling thread's next regions gets a thread at once. Code needs
/// this if a ticket waits for others in loops of its own, which no thread can leave to run another
/// ticket.
void tsm_meet(int wanted);
int tsm_get_num_threads();
int tsm_get_thread_num();
int tsm_in_parallel();
}
