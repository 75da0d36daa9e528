/// Free blocks by size, with best fit in a few reads, however many blocks there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

namespace tightship::resource {

/// Granule of sizes and addresses of free blocks, in bytes: room for a node and a footer.
constexpr size_t kFreeGranule = 32;

/// Header of a free block; the block's last word repeats `size_bytes`.
struct FreeNode {
    size_t size_bytes;
    FreeNode *previous;
    FreeNode *next;

    size_t &footer() {
        return *reinterpret_cast<size_t *>(reinterpret_cast<char *>(this) + size_bytes -
                                           sizeof(size_t));
    }
};
static_assert(sizeof(FreeNode) + sizeof(size_t) == kFreeGranule);

/// Doubly linked list through the blocks, most recently freed first.
class FreeChain {
  public:
    void push(FreeNode *node);
    void remove(FreeNode *node);
    FreeNode *head() const { return head_; }

  private:
    FreeNode *head_ = nullptr;
};

/// Lists by size below 1 MiB, one for each size, found by a bitmap of three levels; larger blocks
/// in a tree. Only heads of lists and the tree are outside the blocks. Not thread-safe.
class SizeBins {
  public:
    static constexpr size_t kBinCount = size_t{1} << 15;
    /// Size below which blocks are in lists, by `FreeNode::next`; the others are in the tree.
    static constexpr size_t kListedBytes = kBinCount * kFreeGranule;

    SizeBins();

    void insert(FreeNode *node);
    void remove(FreeNode *node);
    /// Returns a block of the least size that is not below `size_bytes`; null if there is none.
    FreeNode *best(size_t size_bytes) const;

  private:
    struct Free {
        void operator()(void *pointer) const { std::free(pointer); }
    };

    size_t find(size_t bin) const;

    std::unique_ptr<FreeChain[], Free> bins_; // its pages are touched as sizes occur
    uint64_t level0_[kBinCount / 64] = {};
    uint64_t level1_[kBinCount / 64 / 64] = {};
    uint64_t level2_ = 0;
    std::set<std::pair<size_t, FreeNode *>> large_;
};

} // namespace tightship::resource
