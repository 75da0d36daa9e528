/// One attempt to place an instance: depth first, with blame.
///
/// Every placement can be pushed down until each buffer rests on the floor or on another buffer;
/// only such placements are searched. A buffer below which nothing undecided can come is either
/// placed where it rests, or is carried by one placed later. The first alternative is tried first.
/// If it fails, the failure is a claim: a set of buffers that do not fit together above their
/// present lowest offsets. If the decision raised none of these, the claim held before, and the
/// second alternative is not tried.
///
/// A pinned buffer rests at its offset, and nothing carries it.
///
/// Parts of the instance that no undecided buffer connects are solved one after the other.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tightship/search/attempt.hpp"
#include "tightship/search/bits.hpp"
#include "tightship/search/instance.hpp"

namespace tightship::search {

template <class Unit> class Descent {
  public:
    /// Prepares an attempt that decides first, of buffers that may be decided at the same offset,
    /// the one of least `rank`.
    Descent(const Instance<Unit> &instance, std::span<const int> rank, Blame &blame);

    /// Makes at most `nodes_max` decisions. REQUIRES: is called once.
    Outcome run(std::int64_t nodes_max, const Wanted &wanted);

    std::int64_t nodes() const { return nodes_; }
    std::span<const Unit> offsets() const { return at_; } // after `placed`
    const Bits &conflict() const { return claim_; }       // after `failed`

  private:
    static constexpr Unit kFar = std::numeric_limits<Unit>::max() / 2 + 1;
    static constexpr int kNone = -1;

    enum Cause : int { kPlaced = -1, kSupported = -2, kDeferred = -3, kCarried = -4 };

    struct Change {
        int buffer;
        Cause cause;
        Unit rest, low; // before
    };

    struct Part { // sections [begin, end)
        int begin, end;
        std::int64_t blame;
    };

    struct Frame {
        Part part;
        std::size_t entered; // changes before the part was entered, ...
        std::size_t before;  // ... and before its last decision
        int buffer;          // of that decision; kNone if it could not be made
        std::size_t first;   // of the parts that are left after it, ...
        std::size_t next;    // ... and of those not yet entered; they end where `parts_` does
    };

    template <class Visit> void for_each_neighbour(int buffer, Visit visit) const;
    Unit align_up(Unit offset, int buffer) const;
    Unit lowest_carrier(int buffer);
    bool is_before(int one, int other) const;

    void enter(Part part);
    void leave();
    Outcome solve();
    bool decide();
    bool retry();
    void split(const Part &whole, int placed);
    int choose(const Part &part);
    bool place(int buffer);
    bool defer(int buffer);
    bool raise(int buffer, Unit low, Cause cause);
    bool watch(int section);
    bool watch_all_of(int buffer);
    void set_witness(int section, int buffer);
    bool unwind(std::size_t size);
    void unplace(int buffer);
    void claim_neighbours(int buffer);

    const Instance<Unit> &instance_;
    std::span<const int> rank_;
    Blame &blame_;
    Wanted wanted_{};
    std::vector<Unit> rest_;    // where it rests on those placed; kFar once placed
    std::vector<Unit> low_;     // no lower, >= rest_; above it where it must be carried
    std::vector<Unit> at_;      // of those placed
    std::vector<Unit> total_;   // of each section: sizes not yet placed
    std::vector<int> crossing_; // of each section: undecided buffers live in the one before, too
    std::vector<int> witness_;  // of each section: one that can lie at its bottom
    std::vector<int> watching_; // of each buffer: sections that have it as their witness
    std::vector<int> raised_;   // witnesses that have been raised
    std::vector<Unit> blocks_;  // room for `choose`
    std::vector<Change> changes_;
    std::vector<Part> parts_;
    std::vector<Frame> frames_;
    std::vector<std::uint64_t> reasons_; // claims behind buffers deferred, a stack
    Bits claim_;
    std::int64_t nodes_ = 0;
    std::int64_t nodes_max_ = 0;
};

} // namespace tightship::search
