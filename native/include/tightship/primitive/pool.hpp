/// The memory of the temporaries of one running primitive.
#pragma once

#include "tightship/primitive/lifetimes.hpp"
#include "tightship/resource/chunk.hpp"

#include <deque>

namespace tightship::primitive {

/// A block of a resource for each region of a layout.
class Pool {
  public:
    /// Throws `resource::Refused`, having given back what it has.
    Pool(std::shared_ptr<resource::MemoryResource> resource, const std::vector<Temporary> &regions);
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    /// Another one with regions of the same sizes, from the same resource.
    std::unique_ptr<Pool> duplicate() const;

    /// Whether every region of a layout has room in the one of its rank, aligned as it asks.
    bool holds(const PoolLayout &layout) const;
    char *address(PoolLayout::Position position) const {
        return blocks_[position.region].start() + position.offset_bytes;
    }

    uint64_t identity() const { return identity_; } ///< no other pool of the process ever has it
    size_t size_bytes() const { return size_bytes_; }
    const std::shared_ptr<resource::MemoryResource> &resource() const { return resource_; }

  private:
    std::shared_ptr<resource::MemoryResource> resource_;
    std::vector<Temporary> regions_;
    std::deque<resource::Chunk> blocks_;
    size_t size_bytes_ = 0;
    uint64_t identity_;
};

} // namespace tightship::primitive
