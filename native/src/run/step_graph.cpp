#include "tightship/run/step_graph.hpp"

#include "tightship/parallel.hpp"

#include "cpu.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>

namespace tightship {

namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(20);
/// Longer than most steps that a worker waits for, of which some take less than to wake a thread.
constexpr auto kSpinInterval = std::chrono::microseconds(300);
constexpr int kPauses = 64; ///< between two looks at the clock

} // namespace

StepGraph::StepGraph(size_t first, size_t last, std::span<const std::pair<int64_t, int64_t>> edges,
                     std::span<const uint32_t> order)
    : first_(first), waits_(last - first, 0), begin_(last - first + 1, 0), rank_(last - first),
      step_at_(order.begin(), order.end()) {
    if (order.empty()) {
        step_at_.resize(rank_.size());
        std::iota(step_at_.begin(), step_at_.end(), 0);
    }
    assert(step_at_.size() == rank_.size());
    for (uint32_t rank = 0; rank < rank_.size(); ++rank)
        rank_[step_at_[rank]] = rank;
    std::vector<std::pair<int64_t, int64_t>> sorted(edges.begin(), edges.end());
    std::ranges::sort(sorted);
    for (const auto &[before, after] : sorted) {
        assert(static_cast<int64_t>(first) <= before && before < after);
        assert(after < static_cast<int64_t>(last));
        ++waits_[static_cast<size_t>(after) - first];
        ++begin_[static_cast<size_t>(before) - first + 1];
        after_.push_back(static_cast<uint32_t>(static_cast<size_t>(after) - first));
    }
    for (size_t step = 0; step + 1 < begin_.size(); ++step)
        begin_[step + 1] += begin_[step];
}

/// State of one run; everything except the steps themselves happens under the lock.
struct StepRun::State {
    const StepGraph &graph;
    std::vector<uint32_t> &waits;
    std::vector<uint32_t> &ready;
    size_t left;
    void *data;
    void (*execute)(void *, size_t);
    bool (*look)(void *);

    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<uint32_t> changes = 0; ///< times that something changed that workers wait for
    bool is_ended = false;
    std::exception_ptr error;

    void work(bool is_caller) {
        std::unique_lock lock(mutex);
        while (left > 0 && !is_ended) {
            if (is_caller && !looked(lock))
                break;
            if (ready.empty()) {
                if (!spun(lock))
                    changed.wait_for(lock, kLookInterval);
                continue;
            }
            std::ranges::pop_heap(ready, std::greater{});
            const uint32_t step = graph.step_at(ready.back());
            ready.pop_back();
            lock.unlock();
            const bool is_done = attempt([&] {
                execute(data, graph.first() + step);
                return true;
            });
            lock.lock();
            if (is_done)
                finish(step);
        }
    }

    /// Waits a short time without the lock; returns whether something has changed.
    bool spun(std::unique_lock<std::mutex> &lock) {
        const uint32_t seen = changes.load(std::memory_order_relaxed);
        lock.unlock();
        const auto until = std::chrono::steady_clock::now() + kSpinInterval;
        do
            for (int turn = 0; turn < kPauses && changes.load(std::memory_order_relaxed) == seen;
                 ++turn)
                omp::pause();
        while (changes.load(std::memory_order_relaxed) == seen &&
               std::chrono::steady_clock::now() < until);
        lock.lock();
        return changes.load(std::memory_order_relaxed) != seen;
    }

    bool looked(std::unique_lock<std::mutex> &lock) {
        lock.unlock();
        const bool goes_on = attempt([&] { return look(data); });
        lock.lock();
        if (!goes_on)
            end();
        return goes_on;
    }

    /// Returns the result of `call`; if it throws, keeps the error and returns false.
    template <class Call> bool attempt(const Call &call) {
        try {
            return call();
        } catch (...) {
            const std::lock_guard guard(mutex);
            if (!error)
                error = std::current_exception();
            end();
            return false;
        }
    }

    void end() {
        is_ended = true;
        report();
        changed.notify_all();
    }

    void finish(uint32_t step) {
        --left;
        size_t woken = 0;
        for (const uint32_t next : graph.after(step))
            if (--waits[next] == 0) {
                ready.push_back(graph.rank(next));
                std::ranges::push_heap(ready, std::greater{});
                ++woken;
            }
        if (left == 0 || woken > 1)
            report();
        if (left == 0)
            changed.notify_all();
        else
            for (; woken > 1; --woken)
                changed.notify_one(); // this worker takes the remaining one
    }

    void report() { changes.fetch_add(1, std::memory_order_relaxed); }
};

StepRun::StepRun(const StepGraph &graph) : graph_(graph) {
    waits_.reserve(graph.count());
    ready_.reserve(graph.count());
}

bool StepRun::run(int workers, void *data, void (*execute)(void *data, size_t step),
                  bool (*look)(void *data)) {
    waits_.assign(graph_.waits().begin(), graph_.waits().end());
    ready_.clear();
    for (uint32_t step = 0; step < waits_.size(); ++step)
        if (waits_[step] == 0)
            ready_.push_back(graph_.rank(step));
    std::ranges::make_heap(ready_, std::greater{});
    State state{graph_, waits_, ready_, waits_.size(), data, execute, look, {}, {}, false, {}};
    const auto call = [](void *of_run, int ticket) {
        static_cast<State *>(of_run)->work(ticket == 0);
    };
    run_tickets(workers, call, &state);
    if (state.error)
        std::rethrow_exception(state.error);
    return state.left == 0;
}

} // namespace tightship
