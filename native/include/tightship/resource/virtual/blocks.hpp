/// Range of addresses as a row of blocks, each live, free, or without memory.
#pragma once

#include "tightship/resource/virtual/paged_device.hpp"
#include "tightship/resource/virtual/use.hpp"

#include <set>
#include <unordered_map>
#include <vector>

namespace tightship::resource {

/// State of a block. `kept`: free, but left whole for a request of exactly its size.
enum class BlockState : uint8_t { live, kept, free, hole };

struct AddressRange;

/// Block in a row. Neighbours differ: two holes are joined, and so are two free blocks of one user.
struct Block {
    uintptr_t start = 0;
    size_t size_bytes = 0;
    BlockState state = BlockState::hole;
    Block *before = nullptr, *after = nullptr;
    AddressRange *range = nullptr;
    size_t requested_bytes = 0; // while it is live
    StreamUse *user = nullptr;  // stream whose work may still use it; null if none
    uint64_t epoch = 0;         // of that user
    Block *next_kept = nullptr;

    uintptr_t stop() const { return start + size_bytes; }
};

/// Addresses, and the page of memory behind each page of them, if any, up to the last that ever had
/// one.
struct AddressRange {
    std::unique_ptr<VirtualMemory> addresses;
    std::vector<std::unique_ptr<PhysicalMemory>> pages;
    Block *first = nullptr;
};

/// Order of free blocks by size and, among equals, by address.
struct BySize {
    using is_transparent = void;
    bool operator()(const Block *a, const Block *b) const {
        return a->size_bytes != b->size_bytes ? a->size_bytes < b->size_bytes : a->start < b->start;
    }
    bool operator()(const Block *a, size_t size_bytes) const { return a->size_bytes < size_bytes; }
};
using FreeBlocks = std::set<Block *, BySize>;

/// Rows of a pool: cuts and joins blocks, finds them by address and by size.
class Blocks {
  public:
    Blocks() = default;
    Blocks(const Blocks &) = delete;
    Blocks &operator=(const Blocks &) = delete;

    /// Adds a range as one hole.
    void add(std::unique_ptr<VirtualMemory> addresses, size_t page_bytes);
    Block *find(uintptr_t start) const {
        const auto found = by_start_.find(start);
        return found == by_start_.end() ? nullptr : found->second.get();
    }
    /// Returns the block that an address lies in; null if there is none.
    Block *holding(uintptr_t address) const;

    /// Cuts `size_bytes` from `start` on out of a free block or a hole, as a live block; the rest
    /// keeps its state.
    Block *cut(Block *block, uintptr_t start, size_t size_bytes);
    /// Joins live blocks in a row to one.
    Block *merge(Block *first, Block *second) { return join(first, second); }
    /// Joins a block that has become free, or a hole, with neighbours of the same state, and adds
    /// it to the indexes.
    Block *settle(Block *block);
    /// Removes a block from the indexes.
    void unsettle(Block *block);

    /// Returns the free blocks of a user, or, for null, those that any stream may use.
    FreeBlocks &free_of(StreamUse *user) { return free_[user]; }
    /// Returns whether a user has no free blocks; if so, forgets the user.
    bool forget(StreamUse *user) {
        const auto found = free_.find(user);
        if (found != free_.end() && !found->second.empty())
            return false;
        free_.erase(user);
        return true;
    }
    /// Makes the blocks that users have finished with available to all; returns whether there were
    /// any.
    bool release_done();
    const std::set<Block *> &holes() const { return holes_; }
    const std::vector<std::unique_ptr<AddressRange>> &ranges() const { return ranges_; }

  private:
    Block *join(Block *first, Block *second);
    Block *insert(Block block);

    std::vector<std::unique_ptr<AddressRange>> ranges_;
    struct ByStart {
        using is_transparent = void;
        bool operator()(const Block *a, const Block *b) const { return a->start < b->start; }
        bool operator()(uintptr_t address, const Block *block) const {
            return address < block->start;
        }
    };

    std::unordered_map<uintptr_t, std::unique_ptr<Block>> by_start_;
    std::set<Block *, ByStart> in_order_;
    std::unordered_map<StreamUse *, FreeBlocks> free_;
    std::set<Block *> holes_;
};

} // namespace tightship::resource
