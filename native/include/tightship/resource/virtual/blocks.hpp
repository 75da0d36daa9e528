/// One range of addresses as a row of blocks, each in use, free, or without memory.
#pragma once

#include "tightship/resource/virtual/paged_device.hpp"
#include "tightship/resource/virtual/use.hpp"

#include <set>
#include <unordered_map>
#include <vector>

namespace tightship::resource {

/// `kept`: free, but whole: it waits for a request of just its size.
enum class BlockState : uint8_t { live, kept, free, hole };

struct AddressRange;

/// Neighbours in a row differ: two holes are one, and so are two free blocks of one user.
struct Block {
    uintptr_t start = 0;
    size_t size_bytes = 0;
    BlockState state = BlockState::hole;
    Block *before = nullptr, *after = nullptr;
    AddressRange *range = nullptr;
    size_t requested_bytes = 0; // while it is live
    StreamUse *user = nullptr;  // whose work may still use it; null: nobody's
    uint64_t epoch = 0;         // of that user
    Block *next_kept = nullptr;

    uintptr_t stop() const { return start + size_bytes; }
};

/// Addresses, and the page of memory that each page of them has, if any; as far as any ever had.
struct AddressRange {
    std::unique_ptr<VirtualMemory> addresses;
    std::vector<std::unique_ptr<PhysicalMemory>> pages;
    Block *first = nullptr;
};

/// Free blocks by size and, among equals, by address.
struct BySize {
    using is_transparent = void;
    bool operator()(const Block *a, const Block *b) const {
        return a->size_bytes != b->size_bytes ? a->size_bytes < b->size_bytes : a->start < b->start;
    }
    bool operator()(const Block *a, size_t size_bytes) const { return a->size_bytes < size_bytes; }
};
using FreeBlocks = std::set<Block *, BySize>;

/// The rows of a pool: cuts and joins blocks, finds them by address and by size.
class Blocks {
  public:
    Blocks() = default;
    Blocks(const Blocks &) = delete;
    Blocks &operator=(const Blocks &) = delete;

    /// A new range, one hole.
    void add(std::unique_ptr<VirtualMemory> addresses, size_t page_bytes);
    Block *find(uintptr_t start) const {
        const auto found = by_start_.find(start);
        return found == by_start_.end() ? nullptr : found->second.get();
    }
    /// The block that an address lies in; null where none does.
    Block *holding(uintptr_t address) const;

    /// The part of a free block or a hole from `start` on of `size_bytes`, as one that is live;
    /// what is beside it stays as it was.
    Block *cut(Block *block, uintptr_t start, size_t size_bytes);
    /// Live blocks in a row as one.
    Block *merge(Block *first, Block *second) { return join(first, second); }
    /// Joins a block that has become free or a hole with its like, and puts it where it is found.
    Block *settle(Block *block);
    /// Takes a block out of where it is found.
    void unsettle(Block *block);

    /// Free blocks of a user's, or of nobody's; those may be used by all.
    FreeBlocks &free_of(StreamUse *user) { return free_[user]; }
    /// Whether nothing free is this user's; if so, it is not known any more.
    bool forget(StreamUse *user) {
        const auto found = free_.find(user);
        if (found != free_.end() && !found->second.empty())
            return false;
        free_.erase(user);
        return true;
    }
    /// What users are done with becomes nobody's; whether anything did.
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
