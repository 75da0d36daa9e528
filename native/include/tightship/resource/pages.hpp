/// Whole pages, mapped for each request and unmapped when it ends: the roots of every stack.
#pragma once

#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/memory_resource.hpp"

#include <map>
#include <mutex>

namespace tightship::resource {

/// Why nothing more is mapped, and what to change, where the process has hardly any mappings left;
/// empty where it has.
std::string mapping_shortage();

/// Keeps the ranges it has mapped; what they are mapped to is its subclasses' idea.
class PageResource : public MemoryResource, private Forkable {
  public:
    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) final;
    Freed deallocate(void *pointer, size_t size_bytes, size_t alignment = kDefaultAlignment) final;
    Range range_of(const void *pointer) const final;
    size_t size_of(const void *pointer) const final;
    Statistics statistics() const final;
    size_t available_bytes() const final { return SIZE_MAX; }
    std::string refusal(size_t size_bytes, size_t alignment) const override;

    size_t peak_bytes() const;
    size_t allocation_count() const; ///< of all time

  private:
    /// `size_bytes` and `alignment` are multiples of the page size; null when refused.
    virtual void *map(size_t size_bytes, size_t alignment) = 0;
    virtual void unmap(void *pointer, size_t size_bytes) = 0;

    void before_fork() final { mutex_.lock(); }
    void after_fork(bool) final { mutex_.unlock(); }

    mutable std::mutex mutex_;
    std::map<uintptr_t, size_t> live_; // sizes by address, as asked for
    size_t current_bytes_ = 0;         // of their pages
    size_t peak_bytes_ = 0;
    size_t allocation_count_ = 0;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
