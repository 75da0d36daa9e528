/// Memory of the temporaries of one running primitive.
#pragma once

#include "tightship/primitive/lifetimes.hpp"
#include "tightship/resource/chunk.hpp"

#include <list>

namespace tightship::primitive {

class Pool;
using Pools = std::list<std::unique_ptr<Pool>>; ///< spliced: returning allocates nothing

/// Owner of one block of a resource.
class Pool {
  public:
    /// Throws `resource::Refused`.
    Pool(std::shared_ptr<resource::MemoryResource> resource, Temporary need);
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    bool holds(const Temporary &need) const {
        return need.size_bytes <= need_.size_bytes && need.alignment <= need_.alignment;
    }
    char *address(size_t offset_bytes) const { return block_.start() + offset_bytes; }
    const Temporary &need() const { return need_; } ///< size and alignment it was made for

    uint64_t identity() const { return identity_; } ///< unique in the process for all time
    size_t size_bytes() const { return need_.size_bytes; }
    const std::shared_ptr<resource::MemoryResource> &resource() const { return resource_; }

  private:
    friend class PoolManager;
    std::shared_ptr<resource::MemoryResource> resource_;
    Temporary need_;
    resource::Chunk block_;
    uint64_t identity_;
    Pools::iterator place_; ///< in the manager's list, once it has the pool
};

} // namespace tightship::primitive
