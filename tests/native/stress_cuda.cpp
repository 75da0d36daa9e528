/// Threads on the memory of CUDA devices, over a driver without a device.
///
///     stress_cuda DRIVER [STEPS] [SEED] -> exit code 0, or a line that says what was wrong
#include "stress.hpp"

#include "tightship/resource/virtual/chunked_resource.hpp"
#include "tightship/resource/virtual/cuda_pools.hpp"

#include <atomic>
#include <dlfcn.h>
#include <thread>

namespace {

using namespace tightship::resource;

constexpr size_t kPage = 4096;

/// Functions by which tests set up the driver and read its counters.
struct Driver {
    explicit Driver(const char *path) : path(path), library(dlopen(path, RTLD_NOW)) {
        require(library != nullptr, "the driver cannot be opened");
    }
    template <class Function> Function *function(const char *name) const {
        return reinterpret_cast<Function *>(dlsym(library, name));
    }

    const char *path;
    void *library;
    void (*begin)(cuda::StreamHandle) = function<void(cuda::StreamHandle)>("fake_begin");
    void (*finish)(cuda::StreamHandle) = function<void(cuda::StreamHandle)>("fake_finish");
    long (*count)(const char *) = function<long(const char *)>("fake_count");
};

cuda::StreamHandle handle(size_t number) {
    return reinterpret_cast<cuda::StreamHandle>(number << 12);
}

/// Maps chunks over addresses reserved in three parts, if the driver gives them in a row.
void span_reservations(const Driver &driver) {
    CudaDevice device(0, driver.path);
    const auto addresses = device.create_virtual_memory(2 * kPage, kPage);
    if (!addresses->grow(2 * kPage) || !addresses->grow(kPage))
        return;
    std::vector<std::unique_ptr<PhysicalMemory>> made;
    std::vector<PhysicalMemory *> chunks;
    for (int count = 0; count < 5; ++count) {
        made.push_back(device.create_physical_memory(kPage));
        chunks.push_back(made.back().get());
    }
    require(addresses->map(0, chunks), "chunks are not mapped over several reservations");
    require(driver.count("set_access") == 3, "access is not set by reservation");
    std::memset(reinterpret_cast<void *>(addresses->start()), 1, 5 * kPage);
    require(addresses->unmap(0, chunks) == 5, "chunks stay mapped");
    const auto wide = device.create_physical_memory(2 * kPage);
    PhysicalMemory *const one = wide.get();
    require(!addresses->map(kPage, {&one, 1}), "a chunk lies over two reservations");
}

void in_threads(const auto &work) {
    std::vector<std::thread> threads;
    for (size_t number = 0; number < kThreads; ++number)
        threads.emplace_back([&work, number] { work(number); });
    for (std::thread &thread : threads)
        thread.join();
}

/// Frees blocks that the device still reads.
void stress_streams(const Driver &driver, CudaDevice &device, VirtualResource &resource,
                    size_t steps, unsigned seed) {
    resource.record_events(100);
    in_threads([&](size_t number) {
        const auto stream = std::make_shared<CudaStream>(device.context(), handle(number + 1));
        std::minstd_rand random(seed + static_cast<unsigned>(number));
        for (size_t step = 0; step < steps; ++step) {
            const size_t size_bytes = size_for(random, 5 * kPage);
            void *const block = resource.allocate_on(size_bytes, 8, stream);
            require(block != nullptr, "memory is short");
            fill(block, size_bytes, static_cast<uint8_t>(step));
            driver.begin(handle(number + 1));
            require(resource.deallocate_on(block, size_bytes, 8, stream) == Freed::done,
                    "a block was refused");
            check(block);
            driver.finish(handle(number + 1));
            if (step % 16 == number) {
                (void)resource.trim();
                (void)resource.blocks();
                (void)resource.virtual_statistics();
            }
        }
    });
    require(resource.statistics().current_count == 0, "a block was lost");
}

void stress_policies(const Driver &driver, size_t steps, unsigned seed) {
    const auto device = std::make_shared<CudaDevice>(0, driver.path);
    StealingVirtualResource stealing(device,
                                     {.page_bytes = kPage, .patience = std::chrono::seconds(0)});
    stress_streams(driver, *device, stealing, steps, seed);
    ChunkedVirtualResource whole(device, kPage);
    stress_streams(driver, *device, whole, steps, seed);
}

/// Uses the pools as frameworks do: with blocks that other streams use as well, and with the
/// default streams.
void stress_pools(const Driver &driver, size_t steps, unsigned seed) {
    CudaPools &pools = CudaPools::get();
    pools.configure(
        {.page_bytes = kPage, .patience = std::chrono::seconds(0), .driver_path = driver.path});
    in_threads([&](size_t number) {
        std::minstd_rand random(seed + static_cast<unsigned>(number));
        for (size_t step = 0; step < steps; ++step) {
            const int ordinal = static_cast<int>(random() % 2);
            const size_t size_bytes = size_for(random, 3 * kPage);
            const auto own = handle(1000 * (number + 1) + random() % 300);
            const auto other = handle(number + 10);
            void *const block = pools.allocate(size_bytes, ordinal, own);
            require(block != nullptr, "memory is short");
            fill(block, size_bytes, static_cast<uint8_t>(step));
            pools.record_stream(block, other);
            driver.begin(other);
            require(pools.deallocate(block, size_bytes, ordinal, own) == Freed::done,
                    "a block was refused");
            check(block);
            driver.finish(other);
            void *const whole = pools.allocate_whole(size_bytes, ordinal, nullptr);
            fill(whole, size_bytes, static_cast<uint8_t>(number));
            check(whole);
            require(pools.deallocate_whole(whole, ordinal, nullptr) == Freed::done,
                    "a block was refused");
            if (step % 64 == number) {
                (void)pools.trim(ordinal);
                (void)pools.virtual_statistics(ordinal);
            }
            require(pools.stream_count(ordinal) < 400, "streams are kept for good");
        }
    });
    require(pools.live_count(0) == 0 && pools.live_count(1) == 0, "a block was lost");
    pools.configure({});
}

} // namespace

int main(int count, char **arguments) {
    require(count > 1, "name the driver");
    const Driver driver(arguments[1]);
    const size_t steps = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 3'000;
    const auto seed = static_cast<unsigned>(count > 3 ? std::atoi(arguments[3]) : 1);
    span_reservations(driver);
    stress_policies(driver, steps, seed);
    stress_pools(driver, steps, seed);
    for (const char *kind : {"chunks", "reserved", "mapped", "events", "contexts", "misuses"})
        require(driver.count(kind) == 0, kind);
    std::printf("all given back\n");
}
