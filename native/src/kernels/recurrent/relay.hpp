/// Rounds of work in parts, each round after the one before, among threads that may come late.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace tightship::kernels {

/// Members take the part of their number first and then what others have not begun, so that a
/// round waits for nobody who is not at work on it, and one member alone gets through them all.
class Relay {
  public:
    static constexpr int64_t size_bytes(int64_t members) { return (members + 1) * kLineBytes; }

    /// REQUIRES: `size_bytes` at `room`, set by `reset` before any member runs.
    Relay(char *room, int64_t members) : room_(room), members_(members) {}

    void reset() {
        for (int64_t line = 0; line <= members_; ++line)
            counter(line).store(0, std::memory_order_relaxed);
    }

    /// Does what is left of a round, `part(index, count)`, and returns when all of it is done.
    /// Rounds are numbered from 0; every member runs each.
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

    /// The first counts parts that are done, each other one the rounds that a part has begun.
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
