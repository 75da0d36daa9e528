/// What PyTorch's caching allocator for devices would hold: a simulation to compare with.
#pragma once

#include "tightship/resource/chunk.hpp"
#include "tightship/resource/host.hpp"

#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace tightship::resource {

/// The rules of one stream: sizes in units of 512 bytes; blocks of at most 1 MiB are cut from
/// segments of 2 MiB, those below 10 MiB from segments of 20 MiB, larger ones have segments of
/// their own, in units of 2 MiB. The smallest free block that is large enough is cut where the rest
/// is worth keeping; free neighbours of a segment join; segments are kept.
/// Its time is not PyTorch's, which asks a driver for segments and records events.
class CachingSimulation final : public MemoryResource {
  public:
    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    Reach reach() const override { return {SIZE_MAX, kUnit}; }
    Statistics statistics() const override;

  private:
    static constexpr size_t kUnit = 512;

    struct Block {
        size_t size_bytes;
        uintptr_t segment;
        bool is_small;
        size_t asked_bytes; // 0 while it is free
    };
    using Blocks = std::map<uintptr_t, Block>;
    using Free = std::set<std::pair<size_t, uintptr_t>>;

    Blocks::iterator add_segment(size_t size_bytes, bool is_small);
    void cut(Blocks::iterator block, size_t size_bytes);

    std::shared_ptr<HostResource> host_ = std::make_shared<HostResource>();
    mutable std::mutex mutex_;
    Blocks blocks_;
    Free free_[2]; // large, small
    std::vector<std::unique_ptr<Chunk>> segments_;
    size_t held_bytes_ = 0;
    size_t current_bytes_ = 0;
    size_t current_count_ = 0;
};

} // namespace tightship::resource
