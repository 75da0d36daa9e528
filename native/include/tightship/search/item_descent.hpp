/// One attempt to place items: depth first, with blame.
///
/// Any placement can be pushed down until each item is carried: the next lower base would have it
/// meet another, or leave its range. So the item that can lie lowest is either placed there or
/// has a base that another keeps it up to; the search tries the first, then the lowest of the
/// second. Items may lie below what is placed already, and two may carry each other; where none
/// above is sure to carry it, an item is tried where it is.
///
/// A failure is a claim: items of which no placement exists with those placed where they are and
/// the others not below their present lowest bases. It names placed items, too; a decision about
/// an item that a claim does not name is not taken another way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tightship/search/attempt.hpp"
#include "tightship/search/bits.hpp"
#include "tightship/search/item_instance.hpp"

namespace tightship::search {

class ItemDescent {
  public:
    /// Of items that may be decided at the same base, the first by `rank` is.
    ItemDescent(const ItemInstance &instance, std::span<const int> rank, Blame &blame);

    /// Decides at most `nodes_max` times. REQUIRES: is called once.
    Outcome run(std::int64_t nodes_max, const Wanted &wanted);

    std::int64_t nodes() const { return nodes_; }
    std::span<const std::int64_t> offsets() const { return at_; } // after `placed`
    const Bits &conflict() const { return claim_; }               // after `failed`

  private:
    static constexpr std::int64_t kFar = ItemInstance::kFar;
    static constexpr int kNone = -1;
    static constexpr int kFailed = -2;

    /// Why an item changed, beside the index of one that was placed in its way.
    enum Cause : int { kPlaced = -1, kNoted = -2, kDeferred = -3, kCarried = -4, kWitness = -5 };

    struct Change {
        int item, cause;        // or a section, of `kWitness`
        std::int64_t low, roof; // before
        int deferral;           // before, or the witness before
    };
    struct Decision {
        std::size_t changes; // before it
        int item;
    };

    bool start();
    int choose();
    std::int64_t lowest_carried(int item, std::int64_t from) const;
    bool place(int item);
    bool defer(int item);
    bool raise(int item, std::int64_t base);
    bool raise_to(int item, std::int64_t base);
    bool look();
    bool section_fits(int section);
    bool fits_between(int section, std::int64_t from, std::int64_t to);
    bool cost_fits();
    bool peaks_fit();
    std::int64_t bytes_between(std::int64_t from, std::int64_t to) const;
    int bank_of(int item) const;
    bool is_placed(int item) const { return low_[item] == kFar; }
    void touch(int item);
    void set_witness(int section, int item);
    void remember(int item, int cause);
    bool unwind(std::size_t size);
    bool refuse(int item);

    const ItemInstance &instance_;
    std::span<const int> rank_;
    Blame &blame_;
    std::vector<std::int64_t> low_;  // no base below, but where it failed; kFar once placed
    std::vector<std::int64_t> roof_; // bases from `low_` up to here meet nothing placed
    std::vector<std::int64_t> at_;   // of those placed
    std::vector<int> deferral_;      // which claim keeps it from where it was tried last
    std::vector<Change> changes_;
    std::vector<Decision> decisions_;
    std::vector<std::uint64_t> reasons_; // claims behind items deferred, a stack
    int reason_count_ = 0;
    std::vector<int> witness_; // of each section: one that the rest fits above, with what is placed
    std::vector<int> watching_; // of each item: sections that have it as their witness
    std::vector<int> touched_;  // sections to look at
    std::vector<char> is_touched_;
    Bits claim_;
    std::int64_t nodes_ = 0;
};

} // namespace tightship::search
