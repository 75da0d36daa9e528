/// Dispatch of requests by size to resources of their own.
#pragma once

#include "tightship/resource/adaptor.hpp"

#include <vector>

namespace tightship::resource {

struct Bin {
    size_t size_bytes; ///< the largest request that goes there
    std::shared_ptr<MemoryResource> resource;
};

/// Sends a request to the first bin that serves its size and alignment, else to the upstream. The
/// choice does not depend on what is in use, so a block's size and alignment tell where it goes
/// back.
class BinningResource final : public Adaptor {
  public:
    /// Throws `Misuse` if sizes do not rise, if a bin cannot serve its size, or if one resource is
    /// given twice.
    BinningResource(std::shared_ptr<MemoryResource> upstream, std::vector<Bin> bins);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    Reach reach() const override;
    bool supports_free() const override;
    bool is_shared() const override;
    Statistics statistics() const override;
    size_t trim() override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    size_t available_bytes() const override;
    void each_upstream(const Visit &visit) const override;

  private:
    MemoryResource &part_of(size_t size_bytes, size_t alignment) const;
    MemoryResource &owner_of(const void *pointer) const;

    std::vector<Bin> bins_; // by rising size
};

} // namespace tightship::resource
