/// Calls of one connection and their answers, in memory that a client and its driver share.
///
/// The first word says whose turn it is. Slots follow, two for each call: it and its answer. A
/// connection has one call under way here, so each side counts for itself which slots are next, and
/// nothing that the other has written is used as an index.
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

/// What a call is answered that has to be made by the socket.
constexpr std::string_view kElsewhere{"\0", 1};

/// Whose turn it is, or what the driver does.
enum class RingState : uint32_t {
    kAway,     ///< it looks at the socket only
    kAttended, ///< it waits for a call here
    kCalled,   ///< one has come, and the client looks here for the answer
    kAsleep,   ///< likewise, and the answer is to come by the socket
};

/// Looks at something again and again: not for longer than a limit, and not where others want the
/// processor, which each look offers them.
class Looking {
  public:
    using Clock = std::chrono::steady_clock;

    explicit Looking(Clock::duration limit) : latest_(Clock::now()), until_(latest_ + limit) {}

    /// Offers the processor; whether to look once more after the look that follows.
    bool goes_on();

  private:
    Clock::time_point latest_;
    Clock::time_point until_;
};

/// Which slot of a pair.
enum class Side : size_t { kCall, kAnswer };

/// The memory. Whatever the other side writes to it, its methods stay within it.
class Ring {
  public:
    using Copy = std::array<char, kSlotTextMax>;

    /// Maps a file of `kRingBytes` that never becomes shorter, which may be closed then. Throws
    /// `std::system_error`.
    explicit Ring(int file);
    ~Ring();
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;

    RingState state() const;
    /// Whether it was `from`, and is `to` now.
    bool pass(RingState from, RingState to) const;
    /// What it was.
    RingState set(RingState to) const;

    void write(Side side, size_t position, std::string_view text) const;
    /// A text, copied before anybody looks at it; empty if its slot has no such length.
    std::string_view read(Side side, size_t position, Copy &copy) const;

  private:
    char *slot(Side side, size_t position) const;

    char *start_;
};

/// The client's side; one thread at a time.
class RingCaller {
  public:
    /// As `Ring`.
    explicit RingCaller(int file) : ring_(file) {}

    /// The answer to a call; empty if it will come by the socket; none if the call is to be made
    /// there. Looks for it for up to 150 us where there is more than one processor, less often
    /// while that is in vain.
    std::optional<std::string> call(std::string_view message);

    /// Has the driver look at the socket at once.
    void dismiss() const { ring_.pass(RingState::kAttended, RingState::kAway); }

  private:
    /// Whether the answer has come while it was looked for.
    bool looks();

    Ring ring_;
    size_t position_ = 0;
    int passes_ = 0; ///< calls in which it does not look, as it has looked in vain
    int passes_next_ = 1;
};

} // namespace tightship::driver
