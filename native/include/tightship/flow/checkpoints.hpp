/// Cheapest ways to run a chain forward and back within each amount of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tightship::flow {

/// Chain of n atoms: groups of steps that run forward one after another, and back in reverse. An
/// atom starts from its input, what earlier atoms have written for it and later ones. Amounts of
/// memory are whole slots; matrices have n rows of n. REQUIRES: all numbers are at least 0.
struct Atoms {
    std::span<const std::int64_t> sweep; // operations of an atom that only leads to the next one,
    std::span<const std::int64_t> whole; // that also writes what its way back reads,
    std::span<const std::int64_t> last;  // and that writes only what its way back reads
    std::span<const std::int64_t> saved; // slots that it keeps in the second case
    std::span<const std::int64_t> whole_peak; // slots while it runs in the second case, beside its
                                              // input; the third case needs no more
    std::span<const std::int64_t> back_peak;  // slots of its way back, beside its input
    std::span<const std::int64_t> arriving;   // slots that arrive from behind it on the way back
    std::span<const std::int64_t> held; // [i][s]: slots of the input of s that i's does not have
    std::span<const std::int64_t>
        peaks; // [i][s]: slots of a sweep from i up to s, beside i's input

    std::size_t count() const { return sweep.size(); }
};

/// Kind of a pass: an atom in one of three ways forward, or its way back.
enum class Pass : std::int64_t { sweep, whole, last, back };

/// Table of the cheapest ways by dynamic programming. A range of atoms [i, j] whose input is kept
/// either keeps all that i's way back reads; or sweeps from i to some s, keeps the input of s, goes
/// from s to j and back to s, and starts again from i. (Revolve; for unequal atoms Beaumont et al.,
/// 2019.) Takes O(n^3 * slots) time and O(n^2 * slots) memory, 10 bytes for each range and number
/// of slots; 2 of them are kept.
class CheckpointTable {
  public:
    CheckpointTable(const Atoms &atoms, std::int64_t slots);

    /// Returns operations of going forward and back in `slots`; -1 if that is not enough.
    std::int64_t operations(std::int64_t slots) const;

    /// Returns passes and their atoms in order, as pairs. REQUIRES: `operations(slots)` is not -1.
    std::vector<std::int64_t> passes(std::int64_t slots) const;

  private:
    std::size_t row(std::size_t first, std::size_t last) const {
        return (first * count_ - first * (first + 1) / 2 + last) * stride_;
    }
    void fill(const Atoms &atoms, std::size_t first, std::size_t last);
    void fill_one(const Atoms &atoms, std::size_t atom);
    void fill_kept(const Atoms &atoms, std::size_t first, std::size_t last);
    void fill_checkpoint(const Atoms &atoms, std::size_t first, std::size_t at, std::size_t last);
    void follow(std::size_t first, std::size_t last, std::int64_t slots,
                std::vector<std::int64_t> &passes) const;

    std::size_t count_, stride_;
    std::vector<std::int64_t> swept_;        // operations of sweeps up to each atom
    std::vector<std::int64_t> saved_, held_; // as in Atoms
    std::vector<std::int64_t> cost_;   // of each range and number of slots, then of the whole alone
    std::vector<std::int16_t> choice_; // the checkpoint; the first atom if it keeps all
};

} // namespace tightship::flow
