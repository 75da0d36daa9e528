/// Threads on a cache of things built once and on pools of temporaries.
///
///     stress_primitive [STEPS] [SEED] -> exit code 0, or a line that says what was wrong
#include "stress.hpp"
#include "tightship/primitive/built_once.hpp"
#include "tightship/primitive/memory.hpp"
#include "tightship/resource/host.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace tightship::primitive;
using tightship::resource::HostResource;
using tightship::resource::Misuse;

constexpr int kKeys = 24;

std::atomic<int> built_alive{0};

class Built {
  public:
    explicit Built(int key) : key_(key) { ++built_alive; }
    ~Built() {
        key_ = -1;
        --built_alive;
    }
    int key() const { return key_; }
    size_t size_bytes() const { return static_cast<size_t>(key_) % 7 * 10; }
    void retire() { require(retired_.exchange(true) == false, "an entry was let go twice"); }

  private:
    int key_;
    std::atomic<bool> retired_{false};
};

using Cache = BuiltOnce<int, Built>;

struct Counted {
    std::array<std::atomic<int>, kKeys> building{};
    std::atomic<uint64_t> calls{0}, failures{0};
    std::atomic<bool> may_be_disabled{false};
};

void ask(Cache &cache, Counted &counted, std::minstd_rand &random) {
    const int key = static_cast<int>(random() % kKeys);
    const bool fails = random() % 16 == 0;
    ++counted.calls;
    try {
        const Cache::Use use = cache.obtain(key, [&] {
            const int others = counted.building[static_cast<size_t>(key)]++;
            require(others == 0 || counted.may_be_disabled, "two threads built for one key");
            std::this_thread::yield();
            --counted.building[static_cast<size_t>(key)];
            if (fails)
                throw std::runtime_error("cannot be built");
            return std::make_unique<Built>(key);
        });
        std::this_thread::yield();
        require(use->key() == key, "an entry in use is another, or gone");
    } catch (const std::runtime_error &) {
        ++counted.failures;
    }
}

void squeeze(Cache &cache, Counted &counted, std::minstd_rand &random) {
    static constexpr size_t kEntries[] = {1, 2, 9, 99};
    if (random() % 8 == 0)
        cache.release_idle();
    else
        cache.set_capacity(
            {counted.may_be_disabled && random() % 4 == 0 ? 0 : kEntries[random() % 4],
             random() % 200});
}

template <class Work> void in_threads(int steps, unsigned seed, Work work) {
    std::vector<std::thread> threads;
    std::barrier start(kThreads);
    for (unsigned index = 0; index < kThreads; ++index)
        threads.emplace_back([=, &start] {
            std::minstd_rand random(seed * 31 + index);
            start.arrive_and_wait();
            for (int step = 0; step < steps; ++step)
                work(index, random);
        });
    for (std::thread &thread : threads)
        thread.join();
}

void stress_cache(int steps, unsigned seed, bool may_be_disabled) {
    Cache cache({9, 100});
    Counted counted;
    counted.may_be_disabled = may_be_disabled;
    in_threads(steps, seed, [&](unsigned index, std::minstd_rand &random) {
        if (index == 0 && random() % 4 == 0)
            squeeze(cache, counted, random);
        else
            ask(cache, counted, random);
    });
    const CacheStatistics found = cache.statistics();
    require(found.hits + found.waits + found.misses == counted.calls, "a call was not counted");
    require(counted.failures >= found.failures, "a failed build was kept from its waiters");
    require(found.idle_entries == found.entries && found.idle_bytes == found.bytes,
            "an entry counts as used without a user");
    require(static_cast<size_t>(built_alive) == found.entries, "an entry leaked");
    cache.set_capacity({0, 0});
    require(built_alive == 0 && cache.statistics().bytes == 0, "a disabled cache holds something");
}

/// Checks that a key whose building fails does so for all threads that wait, and can be built
/// afterwards.
void fail_for_all() {
    Cache cache({4, 100});
    std::atomic<int> failed{0}, built{0};
    std::atomic<bool> is_waited_for{false};
    std::vector<std::thread> threads;
    const auto ask_for_one = [&] {
        try {
            (void)cache.obtain(1, [&]() -> std::unique_ptr<Built> {
                ++built;
                while (!is_waited_for)
                    is_waited_for = cache.statistics().waits == kThreads - 1;
                throw std::runtime_error("cannot be built");
            });
        } catch (const std::runtime_error &) {
            ++failed;
        }
    };
    for (size_t index = 0; index < kThreads; ++index)
        threads.emplace_back(ask_for_one);
    for (std::thread &thread : threads)
        thread.join();
    require(built == 1 && failed == kThreads, "a failed build was not seen by all");
    require(cache.obtain(1, [] { return std::make_unique<Built>(1); })->key() == 1,
            "a failed build was kept");
}

/// Checks that the child of a fork finds no lock held and waits for no thread of its parent.
void fork_while_building() {
    Cache cache({4, 100});
    std::atomic<bool> is_building{false}, may_end{false};
    std::thread builder([&] {
        (void)cache.obtain(1, [&] {
            is_building = true;
            while (!may_end)
                std::this_thread::yield();
            return std::make_unique<Built>(1);
        });
    });
    while (!is_building)
        std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
        const bool is_right =
            cache.obtain(1, [] { return std::make_unique<Built>(1); })->key() == 1;
        _exit(is_right ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    may_end = true;
    builder.join();
    require(status == 0, "the child of a fork cannot use the cache");
}

std::shared_ptr<LifetimeManager> lifetimes_of(bool is_blob, const std::vector<size_t> &sizes) {
    std::shared_ptr<LifetimeManager> lifetimes;
    if (is_blob)
        lifetimes = std::make_shared<BlobLifetimeManager>();
    else
        lifetimes = std::make_shared<OffsetLifetimeManager>();
    std::vector<uint32_t> objects;
    for (size_t index = 0; index < sizes.size(); ++index)
        objects.push_back(lifetimes->start_lifetime());
    for (size_t index = 0; index < sizes.size(); ++index)
        lifetimes->end_lifetime(objects[index], {sizes[index], 64});
    return lifetimes;
}

/// Writes all of a run's objects, lets others run, and finds them unchanged.
void run_once(MemoryManager &manager, const std::vector<size_t> &sizes, uint8_t filling,
              const std::shared_ptr<HostResource> &host) {
    Resource held = manager.create_resource(host);
    for (uint32_t object = 0; object < sizes.size(); ++object)
        std::memset(held.address(object), filling + static_cast<int>(object), sizes[object]);
    std::this_thread::yield();
    for (uint32_t object = 0; object < sizes.size(); ++object)
        for (size_t index = 0; index < sizes[object]; ++index)
            require(static_cast<uint8_t>(held.address(object)[index]) ==
                        static_cast<uint8_t>(filling + object),
                    "two runs had the same bytes, or a pool was too small");
    manager.destroy_resource(held);
}

void stress_pools(int steps, unsigned seed, Keep keep) {
    const auto host = std::make_shared<HostResource>();
    const auto pools = std::make_shared<PoolManager>(40'000);
    const std::vector<std::vector<size_t>> sizes = {
        {100}, {5'000, 3'000}, {20'000}, {64, 9'000, 1}};
    std::vector<std::unique_ptr<MemoryManager>> managers;
    for (size_t index = 0; index < sizes.size(); ++index)
        managers.push_back(std::make_unique<MemoryManager>(
            lifetimes_of(index % 2 == 0, sizes[index]), pools, keep));
    in_threads(steps, seed, [&](unsigned index, std::minstd_rand &random) {
        const size_t chosen = random() % sizes.size();
        if (random() % 32 == 0)
            pools->set_budget_bytes(random() % 60'000);
        else if (random() % 32 == 0)
            pools->trim(random() % 30'000);
        else if (random() % 16 == 0)
            managers[chosen]->reserve_pools(host, 1);
        else if (random() % 16 == 0)
            try {
                managers[chosen]->unreserve_pools(1);
            } catch (const Misuse &) { // none is reserved now
            }
        else
            run_once(*managers[chosen], sizes[chosen], static_cast<uint8_t>(index * 50), host);
    });
    managers.clear();
    const PoolStatistics left = pools->statistics();
    require(left.reserved_count == 0, "a pool stays reserved without a holder");
    require(left.free_bytes <= pools->budget_bytes(), "free pools exceed their budget");
    pools->clear_pools();
    require(host->statistics().current_bytes == 0, "a pool leaked");
}

/// Empties a free list from several threads: each gets a pool or learns that none is left.
void empty_the_free_list(int steps, unsigned seed) {
    const auto host = std::make_shared<HostResource>();
    PoolManager pools(1 << 20);
    const PoolLayout layout = lifetimes_of(true, {1'000})->layout();
    pools.register_pool(std::make_unique<Pool>(host, layout.need));
    std::atomic<int> had{0}, holders{0};
    in_threads(steps, seed, [&](unsigned, std::minstd_rand &) {
        const Pool *pool = pools.reserve_pool(layout.need, *host);
        if (pool == nullptr)
            return;
        ++had;
        require(holders++ == 0, "one pool was reserved twice");
        std::this_thread::yield();
        --holders;
        pools.unreserve_pool(pool->identity());
    });
    require(had > 0 && pools.statistics().free_count == 1, "the only pool was lost");
}

} // namespace

int main(int count, char **arguments) {
    const int steps = count > 1 ? std::atoi(arguments[1]) : 20'000;
    const auto seed = static_cast<unsigned>(count > 2 ? std::atoi(arguments[2]) : 1);
    fail_for_all();
    fork_while_building();
    stress_cache(steps, seed, false);
    stress_cache(steps, seed, true);
    empty_the_free_list(steps, seed);
    stress_pools(steps, seed, Keep::kCached);
    stress_pools(steps / 4, seed, Keep::kOnDemand);
    std::printf("done\n");
    return 0;
}
