#include "tightship/resource/virtual/cuda_pools.hpp"

#include <algorithm>
#include <unordered_map>

namespace tightship::resource {

namespace {

constexpr size_t kGranule = StealingVirtualResource::kGranule;

StealingVirtualResource::Settings settings_of(const CudaPools::Settings &settings) {
    StealingVirtualResource::Settings result;
    result.page_bytes = settings.page_bytes;
    result.max_bytes = settings.max_bytes;
    result.patience = settings.patience;
    return result;
}

bool is_per_thread(cuda::StreamHandle stream) {
    return reinterpret_cast<uintptr_t>(stream) == cuda::kPerThreadStream;
}

} // namespace

struct CudaPools::Pool {
    Pool(int ordinal, const Settings &settings)
        : device(std::make_shared<CudaDevice>(ordinal, settings.driver_path)),
          memory(device, settings_of(settings)) {}

    /// Returns the stream of each handle, one as long as the memory refers to it. Null, for any
    /// stream, if the handle does not identify one: the block is then handed out once no work uses
    /// it.
    std::shared_ptr<CudaStream> stream_of(cuda::StreamHandle handle) {
        if (is_per_thread(handle))
            return nullptr;
        const std::lock_guard lock(mutex);
        if (const auto found = streams.find(handle); found != streams.end())
            if (auto stream = found->second.lock())
                return stream;
        if (streams.size() >= stream_limit) {
            std::erase_if(streams, [](const auto &entry) { return entry.second.expired(); });
            stream_limit = std::max(memory.kStreams, 2 * streams.size());
        }
        auto stream = std::make_shared<CudaStream>(device->context(), handle);
        streams[handle] = stream;
        return stream;
    }
    void synchronize(cuda::StreamHandle handle) const {
        const CudaContext::Current current(*device->context());
        (void)device->context()->driver().stream_synchronize(handle);
    }
    std::vector<cuda::StreamHandle> take_others(void *pointer) {
        const std::lock_guard lock(mutex);
        const auto found = others.find(pointer);
        if (found == others.end())
            return {};
        auto result = std::move(found->second);
        others.erase(found);
        return result;
    }
    Freed deallocate(void *pointer, size_t size_bytes, cuda::StreamHandle handle) {
        const auto stream = stream_of(handle);
        if (stream == nullptr)
            synchronize(handle);
        auto taken = take_others(pointer);
        for (const cuda::StreamHandle other : taken)
            stream != nullptr ? stream->wait_for(other) : synchronize(other);
        const Freed freed = memory.deallocate_on(pointer, size_bytes, kDefaultAlignment, stream);
        if (freed != Freed::done && !taken.empty()) {
            const std::lock_guard lock(mutex);
            others.emplace(pointer, std::move(taken));
        }
        return freed;
    }

    std::shared_ptr<CudaDevice> device;
    StealingVirtualResource memory;
    std::mutex mutex; // guards the members below
    std::unordered_map<cuda::StreamHandle, std::weak_ptr<CudaStream>> streams;
    size_t stream_limit = StealingVirtualResource::kStreams;
    std::unordered_map<void *, std::vector<cuda::StreamHandle>> others; // that use a block as well
};

CudaPools &CudaPools::get() {
    static CudaPools *const pools = new CudaPools;
    return *pools;
}

void CudaPools::configure(const Settings &settings) {
    const std::lock_guard lock(mutex_);
    if (settings == settings_)
        return;
    for (const auto &[ordinal, pool] : pools_)
        if (const size_t count = pool->memory.statistics().current_count; count > 0)
            throw Misuse("The pool of CUDA device " + std::to_string(ordinal) + " has " +
                         std::to_string(count) +
                         " blocks in use and keeps its settings. Give them before the first "
                         "allocation.");
    pools_.clear();
    settings_ = settings;
}

std::shared_ptr<CudaPools::Pool> CudaPools::pool_of(int ordinal) {
    const std::lock_guard lock(mutex_);
    auto found = pools_.find(ordinal);
    if (found == pools_.end())
        found = pools_.emplace(ordinal, std::make_shared<Pool>(ordinal, settings_)).first;
    return found->second;
}

void *CudaPools::allocate(size_t size_bytes, int ordinal, cuda::StreamHandle stream) {
    const auto pool = pool_of(ordinal);
    return pool->memory.allocate_on(size_bytes, kDefaultAlignment, pool->stream_of(stream));
}

void *CudaPools::allocate_or_throw(size_t size_bytes, int ordinal, cuda::StreamHandle stream) {
    void *const pointer = allocate(size_bytes, ordinal, stream);
    if (pointer == nullptr)
        throw Refused(pool_of(ordinal)->memory, size_bytes, kDefaultAlignment);
    return pointer;
}

Freed CudaPools::deallocate(void *pointer, size_t size_bytes, int ordinal,
                            cuda::StreamHandle stream) {
    return pool_of(ordinal)->deallocate(pointer, size_bytes, stream);
}

void *CudaPools::allocate_whole(size_t size_bytes, int ordinal, cuda::StreamHandle stream) {
    const auto pool = pool_of(ordinal);
    const size_t whole_bytes = align_up(std::max<size_t>(size_bytes, 1), kGranule);
    if (whole_bytes < size_bytes)
        return nullptr;
    return pool->memory.allocate_on(whole_bytes, kDefaultAlignment,
                                    stream == nullptr ? nullptr : pool->stream_of(stream));
}

Freed CudaPools::deallocate_whole(void *pointer, int ordinal, cuda::StreamHandle stream) {
    const auto pool = pool_of(ordinal);
    return pool->deallocate(pointer, pool->memory.range_of(pointer).size_bytes, stream);
}

void CudaPools::record_stream(void *pointer, cuda::StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    for (const auto &[ordinal, pool] : pools_) {
        if (!pool->memory.owns(pointer))
            continue;
        const std::lock_guard pool_lock(pool->mutex);
        auto &others = pool->others[pointer];
        if (std::find(others.begin(), others.end(), stream) == others.end())
            others.push_back(stream);
    }
}

VirtualStatistics CudaPools::virtual_statistics(int ordinal) {
    return pool_of(ordinal)->memory.virtual_statistics();
}

size_t CudaPools::live_count(int ordinal) {
    return pool_of(ordinal)->memory.statistics().current_count;
}

size_t CudaPools::stream_count(int ordinal) {
    const auto pool = pool_of(ordinal);
    const std::lock_guard lock(pool->mutex);
    return pool->streams.size();
}

size_t CudaPools::trim(int ordinal) {
    return pool_of(ordinal)->memory.trim();
}

} // namespace tightship::resource
