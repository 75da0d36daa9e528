/// Loops that run on the threads of a run.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tightship {

/// Runs `call(data, ticket)` once for each ticket in [0, tickets), on up to as many threads.
void run_tickets(int tickets, void (*call)(void *data, int ticket), void *data);

/// Entry points of another OpenMP runtime of this process, with threads of its own.
struct OpenMp {
    void (*parallel)(void (*function)(void *), void *data, unsigned count, unsigned flags);
    int (*thread_num)();
    int (*num_threads)();
};

/// Makes `run_tickets` use the threads of `runtime` from now on, because two sets of threads that
/// spin for their next work would slow each other down.
void share_threads(const OpenMp &runtime);

/// Cuts [0, count) into at most `threads` ranges of at least `grain` elements and runs
/// `body(begin, end)` on each. `body` must not throw.
template <class Body>
void parallel_for(int threads, int64_t count, int64_t grain, const Body &body) {
    const int64_t tickets = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, threads);
    if (tickets == 1) {
        body(int64_t{0}, count);
        return;
    }
    struct Task {
        const Body &body;
        int64_t count, tickets;
    } task{body, count, tickets};
    const auto call = [](void *data, int ticket) {
        const Task &each = *static_cast<Task *>(data);
        each.body(each.count * ticket / each.tickets, each.count * (ticket + 1) / each.tickets);
    };
    run_tickets(static_cast<int>(tickets), call, &task);
}

} // namespace tightship
