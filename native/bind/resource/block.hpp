/// Live block with an owner: it goes back to its resource when the last view of it dies.
#pragma once

#include "long_call.hpp"

#include "tightship/resource/memory_resource.hpp"

#include <memory>

namespace tightship::bind {

class Block {
  public:
    /// Throws `Refused` if the resource has no such block.
    Block(std::shared_ptr<resource::MemoryResource> resource, size_t size_bytes, size_t alignment)
        : resource_(std::move(resource)), size_bytes_(size_bytes), alignment_(alignment),
          pointer_(
              call_long(size_bytes, [&] { return resource_->allocate(size_bytes, alignment); })) {
        if (pointer_ == nullptr)
            throw resource::Refused(*resource_, size_bytes, alignment);
    }
    ~Block() {
        call_long(size_bytes_,
                  [this] { give_back(*resource_, pointer_, size_bytes_, alignment_); });
    }
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;

    void *pointer() const { return pointer_; }
    uintptr_t address() const { return reinterpret_cast<uintptr_t>(pointer_); }
    size_t size_bytes() const { return size_bytes_; }
    const std::shared_ptr<resource::MemoryResource> &resource() const { return resource_; }

  private:
    std::shared_ptr<resource::MemoryResource> resource_;
    size_t size_bytes_;
    size_t alignment_;
    void *pointer_;
};

} // namespace tightship::bind
