/// How many runs there may be at once, whoever asks for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace tightship::driver {

/// Turns, given in the order in which they were waited for. Any number of threads may ask.
class Turns {
  public:
    explicit Turns(int count) : count_(count), free_(count) {}
    Turns(const Turns &) = delete;
    Turns &operator=(const Turns &) = delete;

    int count() const { return count_; }

    /// Whether there is one that nobody waits for.
    bool is_free() const;

    /// How many wait for one.
    size_t waiting_count() const;

    /// Takes one that nobody waits for, if there is one.
    bool take_free();

    /// Waits for one; false once `patience` has passed. Without a patience, as long as it takes.
    bool take(std::optional<std::chrono::nanoseconds> patience);

    void give_back();

  private:
    struct Waiter {
        std::condition_variable told;
        bool has_turn = false;
    };

    const int count_;
    mutable std::mutex lock_;
    int free_; ///< 0 while somebody waits
    std::deque<Waiter *> waiters_;
};

} // namespace tightship::driver
