#include "tightship/primitive/pool.hpp"

#include <atomic>

namespace tightship::primitive {

namespace {

std::atomic<uint64_t> last_identity{0};

} // namespace

Pool::Pool(std::shared_ptr<resource::MemoryResource> resource,
           const std::vector<Temporary> &regions)
    : resource_(std::move(resource)), regions_(regions), identity_(++last_identity) {
    for (const Temporary &region : regions_) {
        blocks_.emplace_back(resource_, region.size_bytes, region.alignment);
        size_bytes_ += region.size_bytes;
    }
}

std::unique_ptr<Pool> Pool::duplicate() const {
    return std::make_unique<Pool>(resource_, regions_);
}

bool Pool::holds(const PoolLayout &layout) const {
    if (layout.regions.size() > regions_.size())
        return false;
    for (size_t rank = 0; rank < layout.regions.size(); ++rank)
        if (layout.regions[rank].size_bytes > regions_[rank].size_bytes ||
            layout.regions[rank].alignment > regions_[rank].alignment)
            return false;
    return true;
}

} // namespace tightship::primitive
