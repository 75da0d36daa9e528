/// Memory that the chunked policy gives back to the device.
#include "tightship/resource/virtual/chunked_resource.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <span>

namespace tightship::resource {

namespace {

/// Time that a request which the device refuses, and a resource's destructor, wait for work.
constexpr std::chrono::seconds kPatience{1};

} // namespace

ChunkedVirtualResource::~ChunkedVirtualResource() {
    wait_for_all();
    for (auto &[start, mapping] : live_)
        end(mapping);
    for (auto &[size, mapping] : cache_)
        end(mapping);
    for (Mapping &mapping : waiting_)
        end(mapping);
}

/// Unmaps memory that no work uses, for good. Memory that work may still access, and chunks that
/// the device refuses to unmap twice, stay mapped beyond the resource's end: their owners are never
/// destroyed.
void ChunkedVirtualResource::end(Mapping &mapping) {
    if (mapping.use.is_done() && (separate(mapping) || separate(mapping)))
        return;
    (void)mapping.addresses.release();
    using Owners = std::vector<Chunk>;
    alignas(Owners) std::array<std::byte, sizeof(Owners)> unended;
    new (unended.data()) Owners(std::move(mapping.chunks));
}

/// Unmaps all chunks; if the device refuses one, those behind it go back at once.
bool ChunkedVirtualResource::separate(Mapping &mapping) {
    std::array<PhysicalMemory *, 64> run; // a list of more could need memory
    size_t left = mapping.chunks.size();
    for (size_t undone = 0; left > 0 && undone == 0;) {
        const size_t count = std::min(run.size(), left), first = left - count;
        for (size_t index = 0; index < count; ++index)
            run[index] = mapping.chunks[first + index].get();
        undone = count -
                 mapping.addresses->unmap(first * mapping.chunk_bytes, std::span(run).first(count));
        left = first + undone;
    }
    const size_t left_bytes = left * mapping.chunk_bytes;
    if (left < mapping.chunks.size())
        events_.note(Action::unmapped, mapping.addresses->start() + left_bytes,
                     mapping.size_bytes - left_bytes);
    if (left == 0)
        return true;
    mapping.chunks.resize(left);
    mapping.size_bytes = left_bytes;
    return false;
}

void ChunkedVirtualResource::settle_waiting() {
    for (size_t index = waiting_.size(); index-- > 0;)
        if (waiting_[index].use.is_done() && separate(waiting_[index]))
            waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(index));
}

size_t ChunkedVirtualResource::release_unused() {
    const size_t before_bytes = statistics_.physical_bytes;
    for (auto entry = cache_.begin(); entry != cache_.end();) {
        if (!entry->second.use.is_done()) {
            ++entry;
            continue;
        }
        waiting_.push_back(std::move(entry->second));
        entry = cache_.erase(entry);
    }
    settle_waiting();
    std::erase_if(free_chunks_, [](const FreeChunk &free) { return free.use.is_done(); });
    return before_bytes - statistics_.physical_bytes;
}

void ChunkedVirtualResource::wait_for_all() {
    const auto stop = std::chrono::steady_clock::now() + kPatience;
    const auto wait = [&](const Use &use) {
        if (use.fence != nullptr)
            use.fence->wait_for(std::max(stop - std::chrono::steady_clock::now(),
                                         std::chrono::steady_clock::duration::zero()));
    };
    for (const auto &[size, mapping] : cache_)
        wait(mapping.use);
    for (const FreeChunk &free : free_chunks_)
        wait(free.use);
    for (const Mapping &mapping : waiting_)
        wait(mapping.use);
    ++statistics_.wait_count;
}

size_t ChunkedVirtualResource::trim() {
    const auto lock = device_->enter(mutex_);
    return release_unused();
}

} // namespace tightship::resource
