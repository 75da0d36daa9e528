/// Rounds of work in parts, each after the one before, among threads that may arrive late.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace tightship::kernels {

/// Barrier with work sharing: members first do the part of their own number, then parts that no
/// other member has begun. A round waits only for members that are working on it, and one member
/// alone can complete them all.
class Relay {
  public:
    static constexpr int64_t size_bytes(int64_t members) { return (members + 1) * kLineBytes; }

    /// Uses memory at `room`. REQUIRES: `size_bytes` there, set by `reset` before any member runs.
    Relay(char *room, int64_t members) : room_(room), members_(members) {}

    void reset() {
        for (int64_t line = 0; line <= members_; ++line)
            counter(line).store(0, std::memory_order_relaxed);
    }

    /// Does the parts of a round that are left, by `part(index, count)`, and returns when all are
    /// done. Rounds are numbered from 0; every member runs each.
    template <class Part> void run(int64_t member, int64_t round, const Part &part) {
        if (members_ == 1)
            return part(int64_t{0}, int64_t{1});
        for (int64_t offset = 0; offset < members_; ++offset) {
            const int64_t index = (member + offset) % members_;
            int64_t expected = round;
            if (counter(1 + index).compare_exchange_strong(expected, round + 1,
                                                           std::memory_order_acq_rel)) {
                part(index, members_);
                counter(0).fetch_add(1, std::memory_order_acq_rel);
            }
        }
        wait((round + 1) * members_);
    }

  private:
    static constexpr int64_t kLineBytes = 64;
    static constexpr int kSpins = 1 << 9; ///< about as long as a round takes

    /// Returns a counter: the first one of completed parts, each other one of the rounds begun by a
    /// part.
    std::atomic_ref<int64_t> counter(int64_t line) const {
        return std::atomic_ref<int64_t>(*reinterpret_cast<int64_t *>(room_ + line * kLineBytes));
    }

    void wait(int64_t done) const {
        for (int turn = 0; counter(0).load(std::memory_order_acquire) < done; ++turn)
            if (turn < kSpins)
                pause();
            else
                std::this_thread::yield();
    }

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    char *room_;
    int64_t members_;
};

} // namespace tightship::kernels
