/// Threads that fill blocks, hand them to each other, check and give them back.
///
///     stress_resource [STEPS] [SEED] -> exit code 0, or a line that says what was wrong
#include "stress.hpp"

#include "tightship/resource/adaptor/aligned.hpp"
#include "tightship/resource/adaptor/binning.hpp"
#include "tightship/resource/adaptor/combining.hpp"
#include "tightship/resource/adaptor/counting.hpp"
#include "tightship/resource/adaptor/failing.hpp"
#include "tightship/resource/adaptor/fallback.hpp"
#include "tightship/resource/adaptor/guard_page.hpp"
#include "tightship/resource/adaptor/guarded.hpp"
#include "tightship/resource/adaptor/limiting.hpp"
#include "tightship/resource/adaptor/tracing.hpp"
#include "tightship/resource/adaptor/tracking.hpp"
#include "tightship/resource/composite.hpp"
#include "tightship/resource/host.hpp"
#include "tightship/resource/shared.hpp"
#include "tightship/resource/virtual/chunked_resource.hpp"
#include "tightship/resource/virtual/host_device.hpp"
#include "tightship/resource/virtual/host_stream.hpp"
#include "tightship/resource/virtual/shared_device.hpp"
#include "tightship/resource/virtual/stealing_resource.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace tightship::resource;

constexpr size_t kSlots = 256;

/// Slots in which threads leave blocks for each other.
struct Exchange {
    std::atomic<void *> slots[kSlots] = {};
};

void give_back(MemoryResource &resource, void *block, size_t alignment = 8) {
    if (block != nullptr) {
        const size_t size_bytes = check(block);
        require(resource.deallocate(block, size_bytes, alignment) == Freed::done,
                "a block was refused");
    }
}

void work(MemoryResource &resource, Exchange &exchange, size_t size_max, size_t steps,
          unsigned seed) {
    std::minstd_rand random(seed);
    for (size_t step = 0; step < steps; ++step) {
        if (random() % 16 == 0) {
            void *blocks[80];
            const size_t size_bytes = size_for(random, size_max);
            const size_t count = resource.allocate_many(blocks, 1 + random() % 80, size_bytes, 8);
            for (size_t index = 0; index < count; ++index)
                fill(blocks[index], size_bytes, static_cast<uint8_t>(index));
            for (size_t index = 0; index < count; ++index)
                check(blocks[index]);
            if (random() % 2 == 0) { // one by one, by whatever thread
                for (size_t index = 0; index < count; ++index)
                    give_back(resource, exchange.slots[random() % kSlots].exchange(blocks[index]));
                continue;
            }
            require(resource.deallocate_many(blocks, count, size_bytes, 8).fault == Freed::done,
                    "one of many blocks was refused");
            continue;
        }
        const size_t size_bytes = size_for(random, size_max);
        void *block = resource.allocate(size_bytes, 8);
        if (block != nullptr)
            fill(block, size_bytes, static_cast<uint8_t>(random()));
        give_back(resource, exchange.slots[random() % kSlots].exchange(block));
    }
}

void stress(const char *name, MemoryResource &resource, size_t size_max, size_t steps,
            unsigned seed) {
    std::printf("%s\n", name);
    Exchange exchange;
    // Threads end and others begin in between: blocks in their caches must not be lost.
    for (unsigned generation = 0; generation < 3; ++generation) {
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < kThreads; ++number)
            threads.emplace_back(work, std::ref(resource), std::ref(exchange), size_max, steps / 3,
                                 seed + generation * 100 + number);
        for (std::thread &thread : threads)
            thread.join();
    }
    for (auto &slot : exchange.slots)
        give_back(resource, slot.exchange(nullptr));
    if (resource.supports_free())
        require(resource.statistics().current_count == 0, "a block was lost");
}

/// Runs `stress` while another thread reads the resource's statistics and trims it.
void stress_watched(
    const char *name, MemoryResource &resource, size_t steps, unsigned seed,
    const std::function<void()> &look = [] {}) {
    std::atomic<bool> is_over{false};
    std::thread watcher([&] {
        while (!is_over) {
            require(!resource.owns(&is_over), "an address of the stack is a resource's");
            static_cast<void>(resource.statistics().current_count + resource.available_bytes());
            look();
            resource.trim();
            std::this_thread::yield();
        }
    });
    stress(name, resource, 2000, steps, seed);
    is_over = true;
    watcher.join();
}

/// Requests one size from all threads at once, so that they hand each other blocks.
void combine(size_t steps) {
    std::printf("combining, one size\n");
    CombiningResource combining(std::make_shared<FreeListResource>(
        std::make_shared<HostResource>(), FreeListResource::Settings{.chunk_bytes = 65536}));
    std::vector<std::thread> threads;
    for (size_t number = 0; number < kThreads; ++number)
        threads.emplace_back([&, number] {
            for (size_t step = 0; step < steps; ++step) {
                const size_t size_bytes = step % 64 < 48 ? 64 : 64 * (1 + step % 3);
                void *block = combining.allocate(size_bytes);
                fill(block, size_bytes, static_cast<uint8_t>(number));
                give_back(combining, block, kDefaultAlignment);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    require(combining.statistics().current_count == 0, "a block was lost");
}

using Upstream = std::shared_ptr<MemoryResource>;

void stress_adaptors(const Upstream &host, size_t steps, unsigned seed) {
    const auto free_list = [&host] {
        return std::make_shared<FreeListResource>(host,
                                                  FreeListResource::Settings{.chunk_bytes = 65536});
    };
    LimitingResource limiting(free_list(), 300'000);
    stress_watched("limiting", limiting, steps, seed);
    require(limiting.current_bytes() == 0, "a limit counts what is not there");
    StatisticsResource counting(free_list());
    stress_watched("statistics", counting, steps, seed, [&] { counting.pop(counting.push()); });
    require(counting.counters().current_count == 0, "a block is counted that is not there");
    TracingResource tracing(free_list(), "/dev/null");
    stress_watched("tracing", tracing, steps, seed, [&] { tracing.flush(); });
    TrackingResource tracking(free_list(), [] { return std::string("here"); });
    stress_watched("tracking", tracking, steps, seed,
                   [&] { require(tracking.live().size() < 2000, "more is live than there is"); });
    AlignedResource aligned(free_list(), 256, 100);
    stress_watched("aligned", aligned, steps, seed);
    FailingResource failing(free_list(), 100, 50);
    stress_watched("failing", failing, steps, seed);
    FailureCallbackResource asking(std::make_shared<FailingResource>(free_list(), 100, 50),
                                   [](size_t size_bytes) { return size_bytes % 2 == 0; });
    stress_watched("failure callback", asking, steps, seed);
    BinningResource binning(free_list(),
                            {{256, std::make_shared<SlabResource>(host, 1 << 17, 256)}});
    stress_watched("binning", binning, steps, seed);
    CombiningResource combining(free_list());
    stress_watched("combining", combining, steps, seed);
    combine(steps);
    FallbackResource falling(std::make_shared<LimitingResource>(free_list(), 100'000), free_list());
    stress_watched("fallback", falling, steps, seed);
    require(falling.second_count() == 0, "a block of the second resource was lost");
    FreeListResource pool(std::make_shared<LimitingResource>(host, 1 << 19),
                          {.chunk_bytes = 1 << 15});
    stress_watched("pool", pool, steps, seed);
    {
        GuardedResource guarded(free_list(), 1 << 16);
        stress_watched("guarded", guarded, steps / 2, seed);
        require(guarded.faults().empty(), "a fault is found where there was none");
        GuardPageResource pages(free_list(), 1 << 16);
        stress_watched("guard pages", pages, steps / 10, seed);
    }
    TrackingResource checking(std::make_shared<GuardedResource>(
        std::make_shared<CompositeResource>(
            host, 1 << 22, CompositeResource::Settings{.slabs = {{128, 0.1}, {1024, 0.3}}}),
        1 << 14));
    stress_watched("checking stack", checking, steps / 2, seed);
}

/// Frees blocks that a stream of each thread still writes and reads.
void stress_streams(VirtualResource &resource, size_t steps, unsigned seed) {
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < kThreads; ++number)
        threads.emplace_back([&resource, steps, seed, number] {
            const auto stream = std::make_shared<HostStream>();
            std::minstd_rand random(seed + number);
            for (size_t step = 0; step < steps; ++step) {
                const size_t size_bytes = size_for(random, 20'000);
                void *block = resource.allocate_on(size_bytes, 8, stream);
                require(block != nullptr, "memory is short");
                stream->submit([block, size_bytes, number] {
                    fill(block, size_bytes, static_cast<uint8_t>(number));
                    check(block);
                });
                require(resource.deallocate_on(block, size_bytes, 8, stream) == Freed::done,
                        "a block was refused");
            }
            stream->synchronize();
        });
    for (std::thread &thread : threads)
        thread.join();
    require(resource.statistics().current_count == 0, "a block was lost");
}

void stress_virtual(const char *name, VirtualResource &resource, size_t steps, unsigned seed) {
    resource.record_events(100);
    stress_watched(name, resource, steps, seed, [&] {
        static_cast<void>(resource.virtual_statistics());
        require(resource.events().size() <= 100, "more events are kept than there is room for");
        for (const ListedBlock &block : resource.blocks())
            require(block.start >= block.segment, "a block lies outside its segment");
    });
    stress_streams(resource, steps, seed);
}

void stress_policies(size_t steps, unsigned seed) {
    const auto pages = std::make_shared<HostDevice>();
    const auto file = std::make_shared<SharedDevice>();
    StealingVirtualResource stealing(pages, {.page_bytes = 4096});
    stress_virtual("stealing", stealing, steps, seed);
    StealingVirtualResource shared(file, {.page_bytes = 4096});
    stress_virtual("stealing, shared", shared, steps, seed);
    ChunkedVirtualResource whole(pages, 4096);
    stress_virtual("seed", whole, steps, seed);
    ChunkedVirtualResource twice(file, 4096);
    stress_virtual("seed, shared", twice, steps, seed);
}

/// Exhausts a slab with so few blocks that threads reclaim blocks from each other's caches all the
/// time.
void exhaust(size_t steps) {
    std::printf("scarce slab\n");
    SlabResource slab(std::make_shared<HostResource>(), 64 * 130, 64);
    std::atomic<size_t> given{0};
    std::vector<std::thread> threads;
    for (size_t number = 0; number < kThreads; ++number)
        threads.emplace_back([&] {
            for (size_t step = 0; step < steps; ++step) {
                void *blocks[40];
                size_t count = 0;
                while (count < 40 && (blocks[count] = slab.allocate(64)) != nullptr)
                    ++count;
                require(given.fetch_add(count) + count <= slab.block_count(),
                        "more blocks were given than there are");
                given.fetch_sub(count);
                while (count > 0)
                    require(slab.deallocate(blocks[--count], 64) == Freed::done,
                            "a block was refused");
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    require(slab.statistics().current_count == 0, "a block was lost");
    std::vector<void *> all(slab.block_count() + 1);
    require(slab.allocate_many(all.data(), all.size(), 64) == slab.block_count(),
            "a block is out of reach");
}

/// Takes a lock of one thread from others in the middle of its use.
void take_over(size_t times) {
    std::printf("lock\n");
    constexpr size_t kSteps = 300;
    for (size_t time = 0; time < times; ++time) {
        BiasedLock lock;
        size_t count = 0;
        std::vector<std::thread> threads;
        for (size_t number = 0; number < 3; ++number)
            threads.emplace_back([&] {
                for (size_t step = 0; step < kSteps; ++step) {
                    const std::lock_guard held(lock);
                    ++count;
                }
            });
        for (std::thread &thread : threads)
            thread.join();
        require(count == 3 * kSteps, "two threads were within a lock");
    }
}

/// Forks a process whose threads are in the middle of calls.
void fork_often(const std::shared_ptr<MemoryResource> &resource) {
    std::printf("forks\n");
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (size_t number = 0; number < 2; ++number)
        threads.emplace_back([&] {
            while (!is_over) {
                void *block = resource->allocate(5000);
                require(resource->deallocate(block, 5000) == Freed::done, "a block was refused");
            }
        });
    for (int time = 0; time < 50; ++time) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20); // a lock that another thread had would be waited for without end
            void *block = resource->allocate(5000);
            _exit(resource->deallocate(block, 5000) == Freed::done ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        require(status == 0, "a child could not use a resource");
    }
    is_over = true;
    for (std::thread &thread : threads)
        thread.join();
}

} // namespace

int main(int count, char **arguments) {
    const size_t steps = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 30'000;
    const auto seed = static_cast<unsigned>(count > 2 ? std::atoi(arguments[2]) : 1);
    const auto host = std::make_shared<HostResource>();
    SlabResource slab(host, 1 << 20, 256);
    stress("slab", slab, 256, steps, seed);
    SlabResource tight(host, 400 * 256, 256);
    stress("slab that is too small", tight, 256, steps, seed);
    SlabResource shared(std::make_shared<SegmentResource>(), 1 << 20, 120);
    stress("slab in shared memory", shared, 120, steps, seed);
    BumpResource bump(host, size_t{64} << 20, 3);
    stress("bump", bump, 500, steps / 10, seed);
    FreeListResource best(host, {.chunk_bytes = 1 << 16});
    stress("free list", best, 3000, steps / 3, seed);
    FreeListResource first(std::make_shared<BumpResource>(host, 1 << 22, 2), {.fit = Fit::first});
    stress("free list, first fit", first, 3000, steps / 3, seed);
    CompositeResource composite(host, 1 << 21, {.slabs = {{64, 0.1}, {512, 0.2}}});
    stress("composite", composite, 2000, steps, seed);
    stress_adaptors(host, steps / 5, seed);
    stress_policies(steps / 10, seed);
#ifndef __SANITIZE_THREAD__ // which does not follow a fork of several threads
    fork_often(host);
    fork_often(std::make_shared<SegmentResource>());
    fork_often(std::make_shared<FreeListResource>(host));
    fork_often(std::make_shared<SlabResource>(host, 1 << 23, 5008));
#endif
    take_over(steps / 30);
    exhaust(steps / 30);
}
