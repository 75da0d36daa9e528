/// One attempt to place items: depth first, with blame.
///
/// Any placement can be pushed down until each item is carried: at the next lower base it would
/// meet another item, or leave its range. So the item that can lie lowest is either placed there or
/// has a base that another item keeps it up to; the search tries the first alternative, then the
/// lowest base of the second. Items may lie below others placed before, and two may carry each
/// other; if none above is sure to carry it, an item is tried where it is.
///
/// A failure is a claim: items of which no placement exists with those placed where they are and
/// the others not below their present lowest bases. It names placed items, too; a decision about an
/// item that a claim does not name has no second alternative tried.
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
    /// Prepares an attempt that decides first, of items that may be decided at the same base, the
    /// one of least `rank`.
    ItemDescent(const ItemInstance &instance, std::span<const int> rank, Blame &blame);

    /// Makes at most `nodes_max` decisions. REQUIRES: is called once.
    Outcome run(std::int64_t nodes_max, const Wanted &wanted);

    std::int64_t nodes() const { return nodes_; }
    std::span<const std::int64_t> offsets() const { return at_; } // after `placed`
    const Bits &conflict() const { return claim_; }               // after `failed`

  private:
    static constexpr std::int64_t kFar = ItemInstance::kFar;
    static constexpr int kNone = -1;
    static constexpr int kFailed = -2;

    /// Reason why an item changed, other than the index of a placed item in its way.
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
    std::vector<std::int64_t> low_;  // lowest base not yet excluded; kFar once placed
    std::vector<std::int64_t> roof_; // bases from `low_` up to here meet nothing placed
    std::vector<std::int64_t> at_;   // of those placed
    std::vector<int> deferral_;      // claim that keeps it from where it was tried last
    std::vector<Change> changes_;
    std::vector<Decision> decisions_;
    std::vector<std::uint64_t> reasons_; // claims behind items deferred, a stack
    int reason_count_ = 0;
    std::vector<int> witness_;  // of each section: an item above which the rest fits
    std::vector<int> watching_; // of each item: sections that have it as their witness
    std::vector<int> touched_;  // sections to check
    std::vector<char> is_touched_;
    Bits claim_;
    std::int64_t nodes_ = 0;
};

} // namespace tightship::search
