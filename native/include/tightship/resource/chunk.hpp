/// Owner of one block of an upstream.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <memory>
#include <utility>

namespace tightship::resource {

class Chunk {
  public:
    Chunk() = default;
    /// Throws `Refused` if the upstream refuses the block.
    Chunk(std::shared_ptr<MemoryResource> upstream, size_t size_bytes, size_t alignment) {
        obtain(std::move(upstream), size_bytes, alignment);
    }
    ~Chunk() {
        if (pointer_ != nullptr)
            give_back(*upstream_, pointer_, size_bytes_, alignment_);
    }
    Chunk(const Chunk &) = delete;
    Chunk &operator=(const Chunk &) = delete;

    /// Obtains a block as the constructor does. REQUIRES: this owner is empty.
    void obtain(std::shared_ptr<MemoryResource> upstream, size_t size_bytes, size_t alignment) {
        pointer_ = upstream->allocate(size_bytes, alignment);
        if (pointer_ == nullptr)
            throw Refused(*upstream, size_bytes, alignment);
        upstream_ = std::move(upstream);
        size_bytes_ = size_bytes;
        alignment_ = alignment;
    }

    /// Returns the block's upstream; null if this owner is empty.
    const std::shared_ptr<MemoryResource> &upstream() const { return upstream_; }
    char *start() const { return static_cast<char *>(pointer_); }
    size_t size_bytes() const { return size_bytes_; }

  private:
    std::shared_ptr<MemoryResource> upstream_;
    size_t size_bytes_ = 0;
    size_t alignment_ = 1;
    void *pointer_ = nullptr;
};

} // namespace tightship::resource
