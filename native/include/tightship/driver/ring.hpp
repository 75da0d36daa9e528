/// Calls and replies of one connection in memory that a client and its driver share.
///
/// The first word is the state. Slots follow, two for each call: the call and its reply. A
/// connection has one call under way, so each side counts its next slots for itself, and nothing
/// that the other side writes is used as an index.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tightship::driver {

constexpr size_t kRingSlots = 4;
constexpr size_t kSlotBytes = 1024;
constexpr size_t kSlotTextMax = kSlotBytes - sizeof(uint32_t);
constexpr size_t kRingHeadBytes = 64;
constexpr size_t kRingBytes = kRingHeadBytes + 2 * kRingSlots * kSlotBytes;

/// Reply to a call that must be made by the socket instead.
constexpr std::string_view kElsewhere{"\0", 1};

/// States of a ring.
enum class RingState : uint32_t {
    kAway,     ///< the driver reads the socket only
    kAttended, ///< the driver polls for a call
    kCalled,   ///< a call is there, and the client polls for the reply
    kAsleep,   ///< a call is there, and the client waits for the reply at its socket
};

/// Bounded polling: ends after a time limit, or once another thread takes the processor, which is
/// yielded at each step.
class Looking {
  public:
    using Clock = std::chrono::steady_clock;

    explicit Looking(Clock::duration limit) : latest_(Clock::now()), until_(latest_ + limit) {}

    /// Yields the processor; returns whether to go on after one more check.
    bool goes_on();

  private:
    Clock::time_point latest_;
    Clock::time_point until_;
};

/// Slots of a pair.
enum class Side : size_t { kCall, kAnswer };

/// Shared memory of a ring. Whatever the other side writes, methods stay within the memory.
class Ring {
  public:
    using Copy = std::array<char, kSlotTextMax>;

    /// Maps a file of `kRingBytes` that cannot shrink; it may then be closed. Throws
    /// `std::system_error`.
    explicit Ring(int file);
    ~Ring();
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;

    RingState state() const;
    /// Changes the state from `from` to `to`; returns whether it was `from`.
    bool pass(RingState from, RingState to) const;
    /// Sets the state; returns the previous one.
    RingState set(RingState to) const;

    void write(Side side, size_t position, std::string_view text) const;
    /// Returns a copy of a slot's text, which the other side cannot change; empty if its length is
    /// invalid.
    std::string_view read(Side side, size_t position, Copy &copy) const;

  private:
    char *slot(Side side, size_t position) const;

    char *start_;
};

/// Client's side of a ring, for one thread at a time.
class RingCaller {
  public:
    /// Maps a file as `Ring` does.
    explicit RingCaller(int file) : ring_(file) {}

    /// Returns the reply to a call; empty if it will come by the socket; none if the call must be
    /// made there. Polls for up to 150 us if there is more than one processor, less often while
    /// that is in vain.
    std::optional<std::string> call(std::string_view message);

    /// Makes the driver read the socket at once.
    void dismiss() const { ring_.pass(RingState::kAttended, RingState::kAway); }

  private:
    /// Polls; returns whether the reply has come.
    bool looks();

    Ring ring_;
    size_t position_ = 0;
    int passes_ = 0; ///< calls without polling, because polling was in vain
    int passes_next_ = 1;
};

} // namespace tightship::driver
