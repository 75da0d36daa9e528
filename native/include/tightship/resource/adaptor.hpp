/// Base of resources that change how their upstream behaves, and own no memory.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <memory>
#include <utility>

namespace tightship::resource {

/// Forwards every call to the upstream unless a subclass overrides it. Its statistics are the
/// upstream's, including blocks that the upstream gave to others.
class Adaptor : public MemoryResource {
  public:
    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override {
        return upstream_->allocate(size_bytes, alignment);
    }
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override {
        return upstream_->deallocate(pointer, size_bytes, alignment);
    }
    Range range_of(const void *pointer) const override { return upstream_->range_of(pointer); }
    size_t size_of(const void *pointer) const override { return upstream_->size_of(pointer); }
    Reach reach() const override { return upstream_->reach(); }
    bool supports_free() const override { return upstream_->supports_free(); }
    bool is_shared() const override { return upstream_->is_shared(); }
    Statistics statistics() const override { return upstream_->statistics(); }
    size_t trim() override { return upstream_->trim(); }
    size_t discard(void *start, size_t size_bytes) override {
        return upstream_->discard(start, size_bytes);
    }
    std::string refusal(size_t size_bytes, size_t alignment) const override {
        return upstream_->refusal(size_bytes, alignment);
    }
    size_t available_bytes() const override { return upstream_->available_bytes(); }

    void each_upstream(const Visit &visit) const override { visit(upstream_); }

    const std::shared_ptr<MemoryResource> &upstream() const { return upstream_; }

  protected:
    explicit Adaptor(std::shared_ptr<MemoryResource> upstream) : upstream_(std::move(upstream)) {}

  private:
    std::shared_ptr<MemoryResource> upstream_;
};

} // namespace tightship::resource
