/// Loops over virtual resources, and over what they are measured against, in one process.
///
///     virtual_loops ROUNDS -> one JSON object a line: loop, contender, ns
///
/// Nanoseconds are processor time of the thread.
#include "timed.hpp"

#include "tightship/resource/virtual/chunked_resource.hpp"
#include "tightship/resource/virtual/host_device.hpp"
#include "tightship/resource/virtual/shared_device.hpp"
#include "tightship/resource/virtual/stealing_resource.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace tightship::resource;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kPageBytes = 2 * kMiB;
constexpr size_t kPieces = 32;

/// Writes one byte of every page of 4 KiB.
void touch(void *pointer, size_t size_bytes) {
    auto *const bytes = static_cast<volatile char *>(pointer);
    for (size_t at = 0; at < size_bytes; at += 4096)
        bytes[at] = 1;
}

/// Allocates and deallocates one size after the other.
double pairs(MemoryResource &resource, const std::vector<size_t> &sizes) {
    return timed(100'000, [&](size_t index) {
        const size_t size_bytes = sizes[index % sizes.size()];
        void *const pointer = resource.allocate(size_bytes);
        asm volatile("" : : "r"(pointer) : "memory");
        if (resource.deallocate(pointer, size_bytes) != Freed::done)
            std::abort();
    });
}

/// Prepares a resource with other blocks live, and one free block of each size.
template <typename Resource> void prepare(Resource &resource, const std::vector<size_t> &sizes) {
    std::vector<void *> blocks;
    for (int count = 0; count < 200; ++count)
        (void)resource.allocate(kMiB / 8);
    for (const size_t size_bytes : sizes)
        blocks.push_back(resource.allocate(size_bytes));
    for (size_t index = 0; index < sizes.size(); ++index)
        resource.deallocate(blocks[index], sizes[index]);
}

std::vector<size_t> scrambled() {
    std::vector<size_t> order(kPieces);
    for (size_t index = 0; index < kPieces; ++index)
        order[index] = index;
    std::shuffle(order.begin(), order.end(), std::minstd_rand(1));
    return order;
}

/// Maps 64 MiB of chunks that were filled elsewhere one behind the other, and touches them.
double stitch(PagedDevice &device) {
    std::vector<std::unique_ptr<PhysicalMemory>> chunks;
    std::vector<PhysicalMemory *> all;
    for (size_t count = 0; count < kPieces; ++count)
        chunks.push_back(device.create_physical_memory(kPageBytes));
    const auto from = device.create_virtual_memory(2 * kPieces * kPageBytes, kPageBytes);
    const auto to = device.create_virtual_memory(kPieces * kPageBytes, kPageBytes);
    const auto order = scrambled();
    for (size_t index = 0; index < kPieces; ++index) {
        PhysicalMemory *const chunk = chunks[index].get();
        if (!from->map(2 * order[index] * kPageBytes, {&chunk, 1}))
            std::abort();
        touch(reinterpret_cast<char *>(from->start()) + 2 * order[index] * kPageBytes, kPageBytes);
        all.push_back(chunk);
    }
    for (size_t index = 0; index < kPieces; ++index)
        if (!from->unmap(2 * order[index] * kPageBytes, {&all[index], 1}))
            std::abort();
    const double ns = timed(1, [&](size_t) {
        if (!to->map(0, all))
            std::abort();
        touch(reinterpret_cast<void *>(to->start()), kPieces * kPageBytes);
    });
    if (!to->unmap(0, all))
        std::abort();
    return ns;
}

/// Does the same with parts of one file in memory, `MAP_POPULATE`d.
double populate() {
    const int file = memfd_create("virtual_loops", MFD_CLOEXEC);
    const size_t size_bytes = kPieces * kPageBytes;
    if (file < 0 || ftruncate(file, static_cast<off_t>(size_bytes)) != 0)
        std::abort();
    void *const filled =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    void *const to = mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    touch(filled, size_bytes);
    const auto order = scrambled();
    const double ns = timed(1, [&](size_t) {
        for (size_t index = 0; index < kPieces; ++index)
            if (mmap(static_cast<char *>(to) + index * kPageBytes, kPageBytes,
                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file,
                     static_cast<off_t>(order[index] * kPageBytes)) == MAP_FAILED)
                std::abort();
        touch(to, size_bytes);
    });
    munmap(filled, size_bytes);
    munmap(to, size_bytes);
    close(file);
    return ns;
}

const size_t kMix[] = {kMiB / 16, kMiB / 4, kMiB, 3 * kMiB, 8 * kMiB, 49 * kMiB / 2};

/// Replaces 16 live tensors, one after another, by new ones of which every page is written.
double mix(const std::function<void *(size_t)> &get, const std::function<void(void *, size_t)> &put,
           size_t count) {
    std::minstd_rand random(7);
    std::vector<std::pair<void *, size_t>> live(16);
    const auto replace = [&](size_t) {
        auto &[pointer, size_bytes] = live[random() % live.size()];
        if (pointer != nullptr)
            put(pointer, size_bytes);
        size_bytes = kMix[random() % std::size(kMix)];
        pointer = get(size_bytes);
        touch(pointer, size_bytes);
    };
    timed(2000, replace);
    const double ns = timed(count, replace);
    for (const auto &[pointer, size_bytes] : live)
        if (pointer != nullptr)
            put(pointer, size_bytes);
    return ns;
}

/// Writes the same tensors at places of their own that are never given back, to measure touching
/// alone.
double touching(size_t count) {
    constexpr size_t kPlace = 26 * kMiB;
    auto *const places = static_cast<char *>(
        mmap(nullptr, 16 * kPlace, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(places, 16 * kPlace, MADV_HUGEPAGE);
    touch(places, 16 * kPlace);
    size_t next = 0;
    const double ns =
        mix([&](size_t) { return places + next++ % 16 * kPlace; }, [](void *, size_t) {}, count);
    munmap(places, 16 * kPlace);
    return ns;
}

struct Loop {
    std::string name;
    std::string contender;
    std::function<double()> run;
    std::vector<double> ns = {};
};

struct Resources {
    StealingVirtualResource one{std::make_shared<HostDevice>()};
    StealingVirtualResource many{std::make_shared<HostDevice>(), {.idle = std::chrono::hours(24)}};
    StealingVirtualResource cutting{std::make_shared<HostDevice>()};
    StealingVirtualResource mixed{std::make_shared<HostDevice>()};
    ChunkedVirtualResource seed{std::make_shared<HostDevice>(), kPageBytes};
    std::vector<size_t> sizes;
};

std::vector<Loop> loops(Resources &all) {
    for (size_t index = 1; index <= 16; ++index)
        all.sizes.push_back(index * 300'000);
    prepare(all.one, {3 * kMiB});
    prepare(all.many, all.sizes);
    prepare(all.cutting, {64 * kMiB});
    prepare(all.seed, {kPageBytes});
    const auto get = [&all](size_t size_bytes) { return all.mixed.allocate(size_bytes); };
    const auto put = [&all](void *pointer, size_t size_bytes) {
        all.mixed.deallocate(pointer, size_bytes);
    };
    return {
        {"exact", "stealing", [&all] { return pairs(all.one, {3 * kMiB}); }},
        {"exact", "seed", [&all] { return pairs(all.seed, {kPageBytes}); }},
        {"exact, 16 sizes", "stealing", [&all] { return pairs(all.many, all.sizes); }},
        {"cut and joined", "stealing", [&all] { return pairs(all.cutting, all.sizes); }},
        {"stitch 64 MiB", "host", [] { return stitch(*std::make_unique<HostDevice>()); }},
        {"stitch 64 MiB", "shared", [] { return stitch(*std::make_unique<SharedDevice>()); }},
        {"stitch 64 MiB", "memfd, populated", populate},
        {"mix", "touching", [] { return touching(2000); }},
        {"mix", "stealing", [=] { return mix(get, put, 2000); }},
        {"mix", "glibc",
         [] { return mix(std::malloc, [](void *pointer, size_t) { std::free(pointer); }, 60); }},
    };
}

} // namespace

int main(int count, char **arguments) {
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 5;
    Resources resources;
    std::vector<Loop> all = loops(resources);
    for (int round = 0; round < rounds; ++round)
        for (Loop &loop : all)
            loop.ns.push_back(loop.run());
    for (const Loop &loop : all) {
        std::printf("{\"loop\": \"%s\", \"contender\": \"%s\", \"ns\": [", loop.name.c_str(),
                    loop.contender.c_str());
        for (size_t index = 0; index < loop.ns.size(); ++index)
            std::printf("%s%.2f", index ? ", " : "", loop.ns[index]);
        std::printf("]}\n");
    }
}
