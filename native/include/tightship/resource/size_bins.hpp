/// Free blocks by their size: the best fit in a few looks, however many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

namespace tightship::resource {

/// Sizes and addresses of free blocks are multiples of this: what a node and a footer take.
constexpr size_t kFreeGranule = 32;

/// The head of a free block; its last word repeats `size_bytes`.
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

/// A doubly linked list through the blocks, the latest first.
class FreeChain {
  public:
    void push(FreeNode *node);
    void remove(FreeNode *node);
    FreeNode *head() const { return head_; }

  private:
    FreeNode *head_ = nullptr;
};

/// One list for each size below 1 MiB, found by a bitmap of three levels; a tree above.
/// Only heads of lists and the tree are outside the blocks. Not thread-safe.
class SizeBins {
  public:
    static constexpr size_t kBinCount = size_t{1} << 15;
    /// Smaller blocks are in lists, by `FreeNode::next`; the others in the tree.
    static constexpr size_t kListedBytes = kBinCount * kFreeGranule;

    SizeBins();

    void insert(FreeNode *node);
    void remove(FreeNode *node);
    /// A block of the least size that is not below `size_bytes`; null where none is.
    FreeNode *best(size_t size_bytes) const;

  private:
    struct Free {
        void operator()(void *pointer) const { std::free(pointer); }
    };

    size_t find(size_t bin) const;

    std::unique_ptr<FreeChain[], Free> bins_; // pages of it are touched as sizes occur
    uint64_t level0_[kBinCount / 64] = {};
    uint64_t level1_[kBinCount / 64 / 64] = {};
    uint64_t level2_ = 0;
    std::set<std::pair<size_t, FreeNode *>> large_;
};

} // namespace tightship::resource
