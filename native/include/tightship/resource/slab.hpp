/// Blocks of one size: the fastest way to a small one.
#pragma once

#include "tightship/resource/chunk.hpp"
#include "tightship/resource/free_bits.hpp"

#include <optional>

namespace tightship::resource {

/// Cuts one region of `upstream` into blocks of `block_bytes`, and keeps a bit for each.
///
///     region  | bits and their summaries | block 0 | block 1 | ...
///               or apart, in a block of `control`
class SlabResource final : public MemoryResource {
  public:
    /// Takes `size_bytes` of `upstream`; `control` null keeps the bits inside the region.
    /// Throws `Refused`, `Misuse`.
    SlabResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes, size_t block_bytes,
                 std::shared_ptr<MemoryResource> control = nullptr);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override;
    Statistics statistics() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;

    size_t block_bytes() const { return block_bytes_; }
    size_t block_count() const { return block_count_; }
    size_t capacity_bytes() const { return block_count_ * block_bytes_; }
    /// The largest power of two that every block is at a multiple of.
    size_t alignment() const { return alignment_; }

  private:
    char *block(size_t index) const { return start_ + index * block_bytes_; }

    Chunk region_;
    Chunk control_;
    char *start_ = nullptr; // of block 0
    size_t block_bytes_;
    size_t block_count_ = 0;
    size_t alignment_ = 1;
    std::optional<FreeBits> free_;
};

} // namespace tightship::resource
