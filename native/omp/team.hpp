/// Threads of one caller, and the division of a region among them.
///
/// A region of n logical threads is n tickets. Its caller runs ticket 0; a worker that is awake
/// claims one of the others by one atomic exchange; and when the caller is done with ticket 0 it
/// runs the tickets that are left. So a worker that the system does not schedule delays nothing,
/// unless it has claimed a ticket.
///
/// That is safe with barriers inside a region: a thread takes a second ticket only after its first,
/// hence past every barrier of the region, hence after every ticket has started.
#pragma once

#include "solitude.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <vector>

namespace tightship::omp {

using Call = void (*)(void *data, int ticket);

/// Region and ticket that the calling thread runs.
struct Place {
    class Team *team = nullptr; ///< null outside regions, and in a region of one
    int ticket = 0;
    int count = 1;
    bool is_parallel = false; ///< inside a region of more than one
};

extern thread_local constinit Place place;

/// Team of the thread that made it, which alone may use it; workers end when it is destroyed.
class Team {
  public:
    Team();
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    /// Opens a region; the caller then runs ticket 0 itself and calls `finish`. If tickets `meet`,
    /// each of them gets a thread at once.
    /// REQUIRES: no region of this team is open; 2 <= count <= kMaxCount.
    void start(int count, Call call, void *data, bool meet);

    /// Runs or awaits all other tickets.
    void finish();

    /// Waits until every ticket of the region has called it.
    void barrier();

    static constexpr int kMaxCount = 1024;

  private:
    struct alignas(64) Worker {
        explicit Worker(Team &owner) : team(owner) {}
        Team &team;
        pthread_t thread{};
        int excluded = -1;  ///< processor that the worker may not use; -1 for none
        Nanoseconds seen{}; ///< its processor time when the caller last looked
        alignas(64) std::atomic<uint32_t> asleep = 0;
        std::atomic<int> thread_id = 0;
        std::atomic<bool> has_ticket = false;
    };

    static void *work(void *worker);
    bool hire();
    void invite(int count);
    void invite_all();
    void look_around();
    bool is_caller_held();
    void move_caller(int processor);
    void answer_caller();
    int claim();
    void run(int ticket);
    void idle(Worker &worker);
    void call_here(Worker &worker);
    void keep_off(Worker &worker, int processor);
    void await(uint32_t finished);
    void sleep_until(uint32_t finished, Nanoseconds limit);
    Worker *stalled();

    alignas(64) std::atomic<uint32_t> tickets_ = 0; ///< next << 16 | count
    std::atomic<int> caller_processor_ = -1;
    std::atomic<bool> stop_ = false;
    Call call_ = nullptr;
    void *data_ = nullptr;
    int count_ = 0;
    int caller_id_ = 0;
    int invited_ = 0; ///< workers that the open region is offered to

    alignas(64) std::atomic<uint32_t> finished_ = 0; ///< tickets that workers have run
    std::atomic<uint32_t> caller_asleep_ = 0;
    std::atomic<bool> is_open_ = false;   ///< workers may claim tickets of a region
    std::atomic<bool> is_held_ = false;   ///< the caller was seen waiting for its processor
    std::atomic<bool> is_called_ = false; ///< the caller waits for a byte at `answer_`
    int answer_ = -1;                     ///< end of a pipe
    alignas(64) std::atomic<uint32_t> arrived_ = 0;
    std::atomic<uint32_t> barriers_passed_ = 0;

    cpu_set_t processors_{};          ///< that the caller may use
    int processor_count_ = kMaxCount; ///< of them; kMaxCount if unknown
    Solitude solitude_;
    std::vector<std::unique_ptr<Worker>> workers_;
};

} // namespace tightship::omp
