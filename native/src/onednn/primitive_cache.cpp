#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive_cache.hpp"

namespace tightship::onednn {

namespace {

constexpr primitive::Capacity kDefaultCapacity{1024, 1 << 20};
constexpr size_t kDefaultPoolBytes = 64 << 20;

/// Measured resident bytes of a primitive: kernels of the brgemm family, and all others.
constexpr size_t kBrgemmBytes = 80 << 10;
constexpr size_t kOtherBytes = 16 << 10;

size_t resident_bytes(const PrimitiveDesc &desc) {
    return desc.implementation().starts_with("brg") ? kBrgemmBytes : kOtherBytes;
}

std::shared_ptr<const primitive::LifetimeManager> lifetimes_of(size_t scratch_bytes) {
    auto lifetimes = std::make_shared<primitive::OffsetLifetimeManager>();
    lifetimes->end_lifetime(lifetimes->start_lifetime(), {scratch_bytes});
    return lifetimes;
}

} // namespace

CachedPrimitive::CachedPrimitive(const PrimitiveDesc &desc,
                                 std::shared_ptr<primitive::PoolManager> pools,
                                 primitive::Keep keep)
    : primitive_(desc), size_bytes_(resident_bytes(desc)),
      scratch_bytes_(static_cast<size_t>(desc.scratchpad_bytes())),
      memory_(lifetimes_of(scratch_bytes_), std::move(pools), keep) {}

PrimitiveCache &PrimitiveCache::of_process() {
    static auto *const cache = new PrimitiveCache(
        kDefaultCapacity, std::make_shared<primitive::PoolManager>(kDefaultPoolBytes),
        primitive::Keep::kCached);
    return *cache;
}

PrimitiveCache::Use PrimitiveCache::obtain(const PrimitiveDesc &desc, int threads) {
    return BuiltOnce::obtain({desc.signature(), threads}, [&] {
        const ThreadScope scope(threads);
        return std::make_unique<CachedPrimitive>(desc, pools_, keep_);
    });
}

} // namespace tightship::onednn

#endif
