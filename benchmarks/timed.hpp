/// Processor time of the calling thread, for loops that are measured.
#pragma once

#include <cstddef>
#include <ctime>

inline double thread_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Returns the nanoseconds of one of `count` steps.
template <typename Step> double timed(size_t count, Step step) {
    const double start = thread_ns();
    for (size_t index = 0; index < count; ++index)
        step(index);
    return (thread_ns() - start) / static_cast<double>(count);
}
