#include "openmp.hpp"

#include "team.hpp"

#include <algorithm>
#include <memory>
#include <pthread.h>
#include <vector>

namespace tightship::omp {

namespace {

int forks = 0; ///< how often this process is a child of the one that made teams

/// Function and data of a region that GCC compiled, which each ticket runs.
struct Outlined {
    void (*function)(void *data);
    void *data;
};

/// Loop with a static schedule, in one ticket.
struct Loop {
    long start = 0, step = 1, chunk = 0;
    long count = 0; ///< iterations of all tickets
    long next = 0;  ///< chunk, counted over all tickets
};

/// State that a thread keeps between calls.
class Caller {
  public:
    ~Caller() { leave_other_process(); }

    /// Returns the team of the calling thread. A child of `fork` has none of its parent's threads,
    /// so it gets a new one.
    Team &team() {
        leave_other_process();
        if (!team_)
            team_ = std::make_unique<Team>();
        return *team_;
    }

    Outlined outlined{};      ///< of the open region of the team
    std::vector<Place> outer; ///< of each open region, outermost first

  private:
    void leave_other_process() {
        if (forks_ != forks)
            static_cast<void>(team_.release());
        forks_ = forks;
    }

    std::unique_ptr<Team> team_;
    int forks_ = forks;
};

thread_local constinit int wanted_threads = 1;
thread_local constinit bool meets = false;
thread_local constinit Loop loop;
thread_local Caller caller;

[[gnu::constructor]] void watch_forks() {
    pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

/// Returns whether a region gets a team: one inside another runs on one thread, OpenMP's default.
bool opens_team(int count) {
    return count > 1 && !place.is_parallel;
}

} // namespace

} // namespace tightship::omp

using namespace tightship::omp;

void tsm_run(int count, void (*call)(void *data, int ticket), void *data) {
    if (opens_team(count) && count <= Team::kMaxCount) {
        Team &team = caller.team();
        const Place outer = place;
        team.start(count, call, data, meets);
        call(data, 0);
        team.finish();
        place = outer;
        return;
    }
    for (int ticket = 0; ticket < count; ++ticket)
        call(data, ticket);
}

void TSMP_parallel_start(void (*function)(void *data), void *data, unsigned count) {
    const int wanted =
        std::min(count == 0 ? wanted_threads : static_cast<int>(count), Team::kMaxCount);
    caller.outer.push_back(place);
    if (!opens_team(wanted)) {
        place = {nullptr, 0, 1, place.is_parallel};
        return;
    }
    caller.outlined = {function, data};
    const auto call = [](void *outlined, int) {
        const auto [each, its_data] = *static_cast<const Outlined *>(outlined);
        each(its_data);
    };
    caller.team().start(wanted, call, &caller.outlined, meets);
}

void TSMP_parallel_end() {
    if (place.team != nullptr)
        place.team->finish();
    place = caller.outer.back();
    caller.outer.pop_back();
}

void TSMP_parallel(void (*function)(void *data), void *data, unsigned count, unsigned) {
    TSMP_parallel_start(function, data, count);
    function(data);
    TSMP_parallel_end();
}

void TSMP_barrier() {
    if (place.team != nullptr)
        place.team->barrier();
}

bool TSMP_loop_static_start(long start, long stop, long step, long chunk, long *first, long *last) {
    const long count = step > 0 ? std::max((stop - start + step - 1) / step, 0L)
                                : std::max((start - stop - step - 1) / -step, 0L);
    loop = {start, step, chunk, count, place.ticket};
    return TSMP_loop_static_next(first, last);
}

bool TSMP_loop_static_next(long *first, long *last) {
    const long tickets = place.count;
    long begin = loop.next * loop.chunk;
    long end = std::min(begin + loop.chunk, loop.count);
    if (loop.chunk <= 0) { // one chunk for each ticket; the first few are longer by one
        const long each = loop.count / tickets, longer = loop.count % tickets;
        begin = loop.next * each + std::min(loop.next, longer);
        end = loop.next < tickets ? begin + each + (loop.next < longer ? 1 : 0) : begin;
    }
    if (begin >= end)
        return false;
    loop.next += tickets;
    *first = loop.start + begin * loop.step;
    *last = loop.start + end * loop.step;
    return true;
}

void TSMP_loop_end_nowait() {}

void tsm_set_num_threads(int count) {
    wanted_threads = std::max(count, 1);
}

void tsm_meet(int wanted) {
    meets = wanted != 0;
}

int tsm_get_max_threads() {
    return wanted_threads;
}

int tsm_get_num_threads() {
    return place.count;
}

int tsm_get_thread_num() {
    return place.ticket;
}

int tsm_in_parallel() {
    return place.is_parallel ? 1 : 0;
}
