/// Processors, clocks and waiting on Linux.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <sched.h>

namespace tightship::omp {

using Nanoseconds = std::chrono::nanoseconds;

/// Does one step of a spin: tells the processor that the thread is only waiting.
inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Returns the monotonic time.
Nanoseconds now();

/// Sleeps while `word` is `expected`, at most `limit`; may return early.
void sleep_while(std::atomic<uint32_t> &word, uint32_t expected, std::optional<Nanoseconds> limit);

void wake(std::atomic<uint32_t> &word, int sleepers);

/// Returns the processor time that a thread of this process has used so far.
Nanoseconds processor_time(int thread_id);

/// Returns the processors that the calling thread may use; empty if the system does not say.
cpu_set_t allowed_processors();

/// Limits a thread to `processors`; nothing changes if the system refuses.
void limit_thread(int thread_id, const cpu_set_t &processors);

} // namespace tightship::omp
