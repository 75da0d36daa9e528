#include "tightship/primitive/pool.hpp"

#include <atomic>

namespace tightship::primitive {

namespace {

std::atomic<uint64_t> last_identity{0};

} // namespace

Pool::Pool(std::shared_ptr<resource::MemoryResource> resource, Temporary need)
    : resource_(std::move(resource)), need_(need),
      block_(resource_, need.size_bytes, need.alignment), identity_(++last_identity) {}

} // namespace tightship::primitive
