/// State of a session that each of its steps changes.
#pragma once

#include "tightship/run/program.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <unistd.h>
#include <vector>

namespace tightship {

/// Numbers that a step of one token sets, in arrays of the session.
struct TokenOperands {
    std::shared_ptr<const FixedOperands> fixed; ///< all operands but the results
    void *token = nullptr;                      ///< the token
    bool is_wide = true;                        ///< whether it has 64 bits, rather than 32
    int64_t *past = nullptr;                    ///< tokens before it
};

/// REQUIRES: but for `begin`, the caller has begun a use, or the GIL is held.
class SessionState {
  public:
    /// Begins a use, after which no step of one token is ready; returns whether there was none.
    bool begin() {
        if (!try_use())
            return false;
        ready = 0;
        return true;
    }
    /// Begins a use that leaves what is ready.
    bool try_use() { return !in_use_.exchange(true, std::memory_order_acquire); }
    void end() {
        used_ns = std::chrono::nanoseconds(Watch::Clock::now().time_since_epoch()).count();
        in_use_.store(false, std::memory_order_release);
    }
    bool is_of_this_process() const { return process_ == getpid(); }

    int64_t length = 0; ///< tokens that there are
    int64_t ready = 0;  ///< rows before which a step of one token needs no preparation
    uint64_t uses = 0;
    int64_t used_ns = 0; ///< time of the steady clock at which the last use ended
    TokenOperands operands;
    bool keeps_tokens = false;
    std::vector<int64_t> written; ///< tokens to be kept that steps of one token have appended

  private:
    std::atomic<bool> in_use_ = false;
    pid_t process_ = getpid();
};

} // namespace tightship
