#include "tightship/resource/virtual/chunked_resource.hpp"

#include <algorithm>
#include <new>

namespace tightship::resource {

namespace {

void check_chunk(const PagedDevice &device, size_t chunk_bytes) {
    const size_t granularity = device.granularity_bytes(), largest = device.largest_chunk_bytes();
    if (chunk_bytes == 0 || chunk_bytes % granularity != 0 || chunk_bytes > largest)
        throw Misuse("`chunk_bytes` (= " + std::to_string(chunk_bytes) +
                     ") must be a multiple of " + std::to_string(granularity) +
                     " bytes, the device's granularity, and at most " + std::to_string(largest) +
                     ".");
}

template <class Owners> std::vector<PhysicalMemory *> pointers(const Owners &chunks, auto get) {
    std::vector<PhysicalMemory *> result;
    result.reserve(chunks.size());
    for (const auto &chunk : chunks)
        result.push_back(get(chunk));
    return result;
}

} // namespace

ChunkedVirtualResource::ChunkedVirtualResource(std::shared_ptr<PagedDevice> device,
                                               size_t chunk_bytes)
    : device_(std::move(device)), chunk_bytes_(chunk_bytes) {
    check_chunk(*device_, chunk_bytes);
}

void *ChunkedVirtualResource::allocate_on(size_t size_bytes, size_t alignment,
                                          const StreamPointer &stream) {
    check_stream(*device_, stream);
    const auto lock = device_->enter(mutex_);
    if (is_abandoned_ || size_bytes > SIZE_MAX - chunk_bytes_ || !device_->can_back(size_bytes))
        return nullptr;
    settle_waiting();
    const size_t count = (std::max<size_t>(size_bytes, 1) + chunk_bytes_ - 1) / chunk_bytes_;
    const Request request{count * chunk_bytes_, std::max(alignment, device_->granularity_bytes()),
                          stream};
    const size_t moved_before = statistics_.moved_count;
    Mapping mapping;
    auto place = live_.end();
    try {
        if (!obtain_or_retry(request, mapping))
            return nullptr;
        mapping.requested_bytes = size_bytes;
        mapping.use = {};
        place = live_.try_emplace(mapping.addresses->start()).first;
    } catch (const std::bad_alloc &) { // no memory for lists of chunks
        return nullptr;
    }
    ++statistics_.allocation_count;
    statistics_.remap_count += statistics_.moved_count > moved_before;
    statistics_.requested_bytes += size_bytes;
    statistics_.allocated_bytes += mapping.size_bytes;
    statistics_.peak_allocated_bytes =
        std::max(statistics_.peak_allocated_bytes, statistics_.allocated_bytes);
    place->second = std::move(mapping);
    events_.note(Action::allocated, place->first, size_bytes);
    return reinterpret_cast<void *>(place->first);
}

Freed ChunkedVirtualResource::deallocate_on(void *pointer, size_t size_bytes, size_t alignment,
                                            const StreamPointer &stream) {
    check_stream(*device_, stream);
    const auto lock = device_->enter(mutex_);
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const auto found = live_.find(address);
    if (found == live_.end()) {
        for (const auto &[size, mapping] : cache_)
            if (mapping.addresses->start() == address)
                return Freed::already_free;
        const auto after = live_.upper_bound(address);
        const bool is_inside = after != live_.begin() && address - std::prev(after)->first <
                                                             std::prev(after)->second.size_bytes;
        return is_inside ? Freed::not_a_block : Freed::foreign;
    }
    Mapping &mapping = found->second;
    if (mapping.requested_bytes != size_bytes)
        return Freed::wrong_size;
    if (!is_aligned(pointer, alignment))
        return Freed::wrong_alignment;
    statistics_.requested_bytes -= mapping.requested_bytes;
    statistics_.allocated_bytes -= mapping.size_bytes;
    mapping.use = {stream, stream ? stream->record() : nullptr};
    events_.note(Action::freed, address, size_bytes);
    if (mapping.chunk_bytes == chunk_bytes_)
        cache_.emplace(mapping.size_bytes, std::move(mapping));
    else
        waiting_.push_back(std::move(mapping));
    live_.erase(found);
    return Freed::done;
}

/// Obtains memory; if the device refuses, waits for work and gives cached memory back before it
/// tries again. Chunks made for a request that the device refuses go back as well.
bool ChunkedVirtualResource::obtain_or_retry(const Request &request, Mapping &mapping) {
    if (obtain(request, mapping))
        return true;
    ++statistics_.retry_count;
    release_unused();
    if (obtain(request, mapping))
        return true;
    wait_for_all();
    release_unused();
    if (obtain(request, mapping))
        return true;
    release_unused();
    return false;
}

size_t ChunkedVirtualResource::size_of(const void *pointer) const {
    const auto lock = device_->enter(mutex_);
    const auto found = live_.find(reinterpret_cast<uintptr_t>(pointer));
    return found == live_.end() ? 0 : found->second.requested_bytes;
}

bool ChunkedVirtualResource::obtain(const Request &request, Mapping &mapping) {
    return reuse(request, mapping) || lengthen(request, mapping) || make(request, mapping);
}

/// Case 2: reuses a mapping of exactly that size.
bool ChunkedVirtualResource::reuse(const Request &request, Mapping &mapping) {
    const auto [first, last] = cache_.equal_range(request.size_bytes);
    for (auto found = first; found != last; ++found) {
        if (!found->second.use.allows(request.stream) ||
            found->second.addresses->start() % request.alignment != 0)
            continue;
        mapping = std::move(found->second);
        cache_.erase(found);
        ++statistics_.exact_count;
        return true;
    }
    return false;
}

/// Case 3: lengthens the largest smaller mapping, in place if possible, else elsewhere.
bool ChunkedVirtualResource::lengthen(const Request &request, Mapping &mapping) {
    auto base = cache_.lower_bound(request.size_bytes);
    for (;;) {
        if (base == cache_.begin())
            return false;
        --base;
        if (base->second.use.allows(request.stream) &&
            base->second.addresses->start() % request.alignment == 0)
            break;
    }
    mapping = std::move(base->second);
    cache_.erase(base);
    const size_t before_bytes = mapping.size_bytes;
    Haul haul;
    bool is_done = gather(request.size_bytes - before_bytes, request.stream, haul);
    const bool fits = mapping.addresses->size_bytes() >= request.size_bytes ||
                      mapping.addresses->grow(request.size_bytes - mapping.addresses->size_bytes());
    const auto more = pointers(haul.chunks, [](const FreeChunk &free) { return free.chunk.get(); });
    if (is_done && fits && mapping.addresses->map(before_bytes, more)) {
        events_.note(Action::mapped, mapping.addresses->start() + before_bytes, haul.size_bytes);
        for (FreeChunk &free : haul.chunks)
            mapping.chunks.push_back(std::move(free.chunk));
        mapping.size_bytes = request.size_bytes;
        return true;
    }
    const auto back = cache_.emplace(before_bytes, std::move(mapping));
    mapping = {};
    Haul all;
    if (is_done && may_rob(back->second, request.stream) && rob(back, before_bytes, all)) {
        for (FreeChunk &free : haul.chunks)
            all.add(std::move(free));
        return join(request, all, mapping);
    }
    keep(haul);
    return false;
}

/// Case 4, with chunks of the smallest larger mapping; and case 1, with cached chunks or new ones.
bool ChunkedVirtualResource::make(const Request &request, Mapping &mapping) {
    Haul haul;
    const auto larger = find_to_rob(request.size_bytes, request.stream);
    if (larger != cache_.end() && larger->first > request.size_bytes &&
        rob(larger, request.size_bytes, haul))
        return join(request, haul, mapping);
    if (gather(request.size_bytes, request.stream, haul))
        return join(request, haul, mapping);
    keep(haul);
    return false;
}

bool ChunkedVirtualResource::join(const Request &request, Haul &haul, Mapping &mapping) {
    auto addresses = device_->create_virtual_memory(request.size_bytes, request.alignment);
    const auto all = pointers(haul.chunks, [](const FreeChunk &free) { return free.chunk.get(); });
    if (addresses == nullptr || !addresses->map(0, all)) {
        keep(haul);
        return false;
    }
    events_.note(Action::mapped, addresses->start(), haul.size_bytes);
    mapping.addresses = std::move(addresses);
    for (FreeChunk &free : haul.chunks)
        mapping.chunks.push_back(std::move(free.chunk));
    mapping.size_bytes = request.size_bytes;
    mapping.chunk_bytes = chunk_bytes_;
    return true;
}

/// Collects whole chunks for `size_bytes`: from the cache of chunks, the oldest first; from the
/// smallest mapping that has enough, or from the largest ones; or new ones.
bool ChunkedVirtualResource::gather(size_t size_bytes, const StreamPointer &stream, Haul &haul) {
    for (auto free = free_chunks_.begin();
         free != free_chunks_.end() && haul.size_bytes < size_bytes;) {
        if (!free->use.allows(stream)) {
            ++free;
            continue;
        }
        haul.add(std::move(*free));
        free = free_chunks_.erase(free);
        ++statistics_.moved_count;
    }
    while (haul.size_bytes < size_bytes) {
        const auto found = find_to_rob(size_bytes - haul.size_bytes, stream);
        if (found == cache_.end() || !rob(found, size_bytes - haul.size_bytes, haul))
            break;
    }
    const size_t found = haul.chunks.size(), found_bytes = haul.size_bytes;
    while (haul.size_bytes < size_bytes) {
        Chunk chunk = create();
        if (chunk == nullptr) {
            haul.chunks.resize(found);
            haul.size_bytes = found_bytes;
            return false;
        }
        haul.add({std::move(chunk), {}});
    }
    return true;
}

ChunkedVirtualResource::Chunk ChunkedVirtualResource::create() {
    auto made = device_->create_physical_memory(chunk_bytes_);
    if (made == nullptr)
        return nullptr;
    ++statistics_.created_count;
    statistics_.physical_bytes += chunk_bytes_;
    statistics_.peak_physical_bytes =
        std::max(statistics_.peak_physical_bytes, statistics_.physical_bytes);
    return Chunk(made.release(), [this](PhysicalMemory *chunk) {
        statistics_.physical_bytes -= chunk->size_bytes();
        ++statistics_.released_count;
        delete chunk;
    });
}

bool ChunkedVirtualResource::may_rob(const Mapping &mapping, const StreamPointer &stream) const {
    return mapping.use.is_done() || (device_->maps_twice() && mapping.use.stream == stream);
}

/// Returns the smallest mapping that has enough, else the largest; the end if none may be taken.
ChunkedVirtualResource::Cache::iterator
ChunkedVirtualResource::find_to_rob(size_t size_bytes, const StreamPointer &stream) {
    const auto larger = cache_.lower_bound(size_bytes);
    for (auto found = larger; found != cache_.end(); ++found)
        if (may_rob(found->second, stream))
            return found;
    for (auto found = larger; found != cache_.begin();)
        if (may_rob((--found)->second, stream))
            return found;
    return cache_.end();
}

/// Takes a mapping's first chunks and frees the others. Its addresses stay until its work is done.
bool ChunkedVirtualResource::rob(Cache::iterator found, size_t size_bytes, Haul &haul) {
    Mapping &mapping = found->second;
    const Use use = mapping.use;
    const bool is_done = use.is_done();
    if (is_done && !separate(mapping)) {
        if (mapping.size_bytes < found->first) { // it is shorter than its key in the cache
            waiting_.push_back(std::move(mapping));
            cache_.erase(found);
        }
        return false;
    }
    const size_t enough = haul.size_bytes + size_bytes;
    for (const Chunk &chunk : mapping.chunks) {
        if (haul.size_bytes < enough) {
            haul.add({chunk, use});
            ++statistics_.moved_count;
        } else {
            free_chunks_.push_back({chunk, use});
        }
    }
    if (is_done)
        mapping.chunks.clear(); // its addresses go when the chunks have left them
    waiting_.push_back(std::move(mapping));
    cache_.erase(found);
    return true;
}

void ChunkedVirtualResource::keep(Haul &haul) {
    for (FreeChunk &free : haul.chunks)
        free_chunks_.push_back(std::move(free));
    haul = {};
}

size_t ChunkedVirtualResource::chunk_bytes() const {
    const auto lock = device_->enter(mutex_);
    return chunk_bytes_;
}

void ChunkedVirtualResource::set_chunk_bytes(size_t chunk_bytes) {
    check_chunk(*device_, chunk_bytes);
    const auto lock = device_->enter(mutex_);
    if (chunk_bytes == chunk_bytes_)
        return;
    chunk_bytes_ = chunk_bytes;
    for (auto &[size, mapping] : cache_)
        waiting_.push_back(std::move(mapping));
    cache_.clear();
    free_chunks_.clear();
    settle_waiting();
}

void ChunkedVirtualResource::after_fork(bool is_child) {
    is_abandoned_ = is_child && (device_->is_shared() || !device_->is_host());
    mutex_.unlock();
}

} // namespace tightship::resource
