/// Whole pages, mapped for each request and unmapped when the block ends.
#pragma once

#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/memory_resource.hpp"

#include <map>
#include <mutex>

namespace tightship::resource {

/// Returns why nothing more is mapped, and what to change, if the process has hardly any mappings
/// left; else an empty text.
std::string mapping_shortage();

/// Base of resources that map pages, with a record of the mapped ranges; subclasses choose what is
/// mapped.
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
    /// Maps pages; `size_bytes` and `alignment` are multiples of the page size. Null if refused.
    virtual void *map(size_t size_bytes, size_t alignment) = 0;
    virtual void unmap(void *pointer, size_t size_bytes) = 0;

    void before_fork() final { mutex_.lock(); }
    void after_fork(bool) final { mutex_.unlock(); }

    mutable std::mutex mutex_;
    std::map<uintptr_t, size_t> live_; // requested sizes by address
    size_t current_bytes_ = 0;         // of their pages
    size_t peak_bytes_ = 0;
    size_t allocation_count_ = 0;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
