/// Cache of values built once and pools of temporaries, while each allocation in turn is refused.
///
///     refused_primitive -> exit code 0, or a line that says what was wrong
///
/// Functions that give something back must not need memory: an exception there would end the
/// process.
#include "stress.hpp"
#include "tightship/primitive/built_once.hpp"
#include "tightship/primitive/memory.hpp"
#include "tightship/resource/host.hpp"

#include <cstdlib>
#include <new>

namespace {

int allocations_left = -1; ///< until one is refused; none is while it is negative

} // namespace

void *operator new(size_t size_bytes) {
    if (allocations_left == 0) {
        allocations_left = -1;
        throw std::bad_alloc();
    }
    if (allocations_left > 0)
        --allocations_left;
    void *found = std::malloc(size_bytes);
    if (found == nullptr)
        throw std::bad_alloc();
    return found;
}

void *operator new(size_t size_bytes, const std::nothrow_t &) noexcept {
    try {
        return operator new(size_bytes);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void operator delete(void *block) noexcept {
    std::free(block);
}

void operator delete(void *block, size_t) noexcept {
    std::free(block);
}

namespace {

using namespace tightship::primitive;
using tightship::resource::HostResource;

struct Built {
    size_t size_bytes() const { return 10; }
    void retire() {}
};

using Cache = BuiltOnce<int, Built>;

/// Returns whether `work` completed with its `number`th allocation refused, because it makes fewer.
template <class Work> bool survives(int number, Work work) {
    allocations_left = number;
    try {
        work();
    } catch (const std::bad_alloc &) {
    }
    const bool is_over = allocations_left >= 0;
    allocations_left = -1;
    return is_over;
}

/// Checks that an entry is kept whole or not at all, and is built when requested again.
void refuse_entries() {
    for (int number = 0;; ++number) {
        Cache cache({2, 15});
        const auto ask = [&](int key) {
            return cache.obtain(key, [] { return std::make_unique<Built>(); });
        };
        const bool is_over = survives(number, [&] {
            for (int key = 0; key < 4; ++key)
                const Cache::Use use = ask(key);
            const Cache::Use first = ask(1), second = ask(2);
            cache.set_capacity({1, 0});
        });
        for (int key = 0; key < 4; ++key)
            (void)ask(key);
        const CacheStatistics found = cache.statistics();
        require(found.idle_entries == found.entries && found.idle_bytes == found.bytes,
                "an entry counts as used without a user");
        if (is_over)
            return;
    }
}

/// Checks that a pool that was made is free, reserved or given back.
void refuse_pools(Keep keep) {
    const auto host = std::make_shared<HostResource>();
    const auto lifetimes = std::make_shared<BlobLifetimeManager>();
    lifetimes->end_lifetime(lifetimes->start_lifetime(), {1'000, 64});
    for (int number = 0;; ++number) {
        const auto pools = std::make_shared<PoolManager>(2'500);
        const bool is_over = survives(number, [&] {
            MemoryManager manager(lifetimes, pools, keep), other(lifetimes, pools, keep);
            manager.reserve_pools(host, 2);
            Resource held = manager.create_resource(host), more = manager.create_resource(host);
            manager.reserve_pools(host, 3);
            Resource third = other.create_resource(host);
            manager.destroy_resource(held);
            manager.unreserve_pools(1);
            other.populate(host, 2);
        });
        require(pools->statistics().reserved_count == 0, "a pool stays reserved without a holder");
        pools->clear_pools();
        require(host->statistics().current_bytes == 0, "a pool leaked");
        if (is_over)
            return;
    }
}

} // namespace

int main() {
    refuse_entries();
    refuse_pools(Keep::kCached);
    refuse_pools(Keep::kOnDemand);
    std::printf("done\n");
    return 0;
}
