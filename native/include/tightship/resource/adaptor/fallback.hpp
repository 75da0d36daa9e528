/// Resource with a second one for requests that the first refuses.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/live_blocks.hpp"

#include <atomic>

namespace tightship::resource {

/// Requests from `first`, which is the upstream, and from `second` if that refuses. Blocks of the
/// second are listed, so that each goes back to the resource that gave it, even if one resource's
/// blocks lie in memory of the other or both have the same upstream.
class FallbackResource final : public Adaptor {
  public:
    /// Throws `Misuse` if both are the same resource.
    FallbackResource(std::shared_ptr<MemoryResource> first, std::shared_ptr<MemoryResource> second);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override {
        void *pointer = upstream()->allocate(size_bytes, alignment);
        return pointer != nullptr ? pointer : from_second(size_bytes, alignment);
    }
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override {
        return may_be_second(pointer) ? to_either(pointer, size_bytes, alignment)
                                      : to_first(pointer, size_bytes, alignment);
    }
    size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                         size_t alignment = kDefaultAlignment) override;
    FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                              size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override {
        return is_second(pointer) ? seconds_.size_of(pointer) : upstream()->size_of(pointer);
    }
    Reach reach() const override;
    bool supports_free() const override;
    bool is_shared() const override;
    Statistics statistics() const override;
    size_t trim() override { return upstream()->trim() + second_->trim(); }
    size_t discard(void *start, size_t size_bytes) override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    size_t available_bytes() const override;
    void each_upstream(const Visit &visit) const override {
        visit(upstream());
        visit(second_);
    }

    const std::shared_ptr<MemoryResource> &second() const { return second_; }
    /// Returns the number of live blocks of the second resource.
    size_t second_count() const { return seconds_.count(); }

  private:
    /// Returns whether `pointer` lies where blocks of the second resource have ever been. The
    /// bounds are written before a block is handed out, so a thread that has the block sees them.
    bool may_be_second(const void *pointer) const {
        const auto address = reinterpret_cast<uintptr_t>(pointer);
        return address >= lowest_.load(std::memory_order_relaxed) &&
               address < highest_.load(std::memory_order_relaxed);
    }
    [[gnu::noinline]] void *from_second(size_t size_bytes, size_t alignment);
    [[gnu::noinline]] Freed to_either(void *pointer, size_t size_bytes, size_t alignment);
    /// Returns a block to the first resource, or refuses it if it is not live; tells a free block
    /// of the second resource from a foreign one.
    Freed to_first(void *pointer, size_t size_bytes, size_t alignment) {
        const Freed freed = upstream()->deallocate(pointer, size_bytes, alignment);
        return freed == Freed::foreign && second_->owns(pointer) ? Freed::already_free : freed;
    }
    bool is_second(const void *pointer) const {
        return may_be_second(pointer) && seconds_.range_of(pointer).contains(pointer);
    }

    std::shared_ptr<MemoryResource> second_;
    LiveBlocks seconds_; // from the second resource
    std::atomic<uintptr_t> lowest_{UINTPTR_MAX}, highest_{0};
};

} // namespace tightship::resource
