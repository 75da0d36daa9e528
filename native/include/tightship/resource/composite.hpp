/// Global resource: slabs of several sizes, bump allocation, and a free list of the blocks freed.
#pragma once

#include "tightship/resource/bump.hpp"
#include "tightship/resource/free_list.hpp"
#include "tightship/resource/region.hpp"
#include "tightship/resource/slab.hpp"

#include <vector>

namespace tightship::resource {

/// Share of a composite's region that goes to a slab of `block_bytes`.
struct SlabShare {
    size_t block_bytes;
    double share;
};

/// Divides one region of `upstream`. Small requests go to the slab of their size, or of the next
/// size; larger requests, and those whose slabs are used up, go to the rest, which is
/// bump-allocated once and afterwards reused through a free list. A block goes back to the part it
/// lies in, whatever its size.
///
///     region  | slab of 16 | slab of 32 | ... | bump, and free blocks of it |
class CompositeResource final : public MemoryResource {
  public:
    struct Settings {
        std::vector<SlabShare> slabs = default_slabs();
        Fit fit = Fit::best;
        bool free_list_last = false; ///< freed blocks wait until the bump is used up
    };

    CompositeResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes)
        : CompositeResource(std::move(upstream), size_bytes, Settings{}) {}
    /// Obtains `size_bytes` from `upstream`. Throws `Refused`, `Misuse`.
    CompositeResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes,
                      Settings settings);

    /// Returns slabs for blocks of 16 to 2048 bytes, in a tenth of the region.
    static std::vector<SlabShare> default_slabs();

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                         size_t alignment = kDefaultAlignment) override;
    FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                              size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    bool is_shared() const override { return is_shared_; }
    Statistics statistics() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    void each_upstream(const Visit &visit) const override { visit(region_.upstream()); }
    /// Keeps the region, and gives back the pages of free blocks in the rest.
    size_t trim() override { return rest_->discard_free(*region_.upstream()); }

    const std::vector<std::shared_ptr<SlabResource>> &slabs() const { return slabs_; }
    const std::shared_ptr<BumpResource> &bump() const { return bump_; }
    const std::shared_ptr<FreeListResource> &free_list() const { return rest_; }

  private:
    /// Returns whether a slab holds `size_bytes`, which is above 0, and its notes record them.
    bool has_class(size_t size_bytes) const { return size_bytes - 1 < class_bytes_max_; }
    /// Returns the smallest slab whose blocks hold `size_bytes`. REQUIRES: `has_class(size_bytes)`.
    SlabResource *class_of(size_t size_bytes) const { return classes_[(size_bytes - 1) / kStep]; }
    /// Finds the slabs that may serve a request, the best first; callers try them in this order.
    /// Returns their number.
    size_t serving_slabs(SlabResource *(&found)[2], size_t size_bytes, size_t alignment) const;
    [[gnu::noinline]] void *allocate_slowly(size_t size_bytes, size_t alignment);
    [[gnu::noinline]] Freed deallocate_slowly(void *pointer, size_t size_bytes, size_t alignment);
    /// Returns the part that a block lies in; the free list if it lies in no slab.
    MemoryResource &part_of(const void *pointer) const;

    static constexpr size_t kStep = 8;

    bool is_shared_;
    Chunk region_;
    std::vector<std::shared_ptr<SlabResource>> slabs_; // by rising size, one after another
    std::vector<SlabResource *> classes_;              // smallest slab for a size, by size in steps
    size_t slab_bytes_max_ = 0, class_bytes_max_ = 0;
    const char *slabs_stop_ = nullptr;
    std::shared_ptr<BumpResource> bump_;
    std::shared_ptr<FreeListResource> rest_;
};

} // namespace tightship::resource
