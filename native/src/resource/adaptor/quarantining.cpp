#include "tightship/resource/adaptor/quarantining.hpp"

#include <algorithm>

namespace tightship::resource {

QuarantiningAdaptor::QuarantiningAdaptor(std::shared_ptr<MemoryResource> upstream,
                                         size_t quarantine_bytes)
    : Adaptor(std::move(upstream)), waiting_(quarantine_bytes) {
    if (!this->upstream()->supports_free())
        throw Misuse("`upstream` takes no block back: there is nothing to hold in quarantine. Put "
                     "a `FreeListResource` between them.");
}

void *QuarantiningAdaptor::take(size_t size_bytes, size_t alignment) {
    void *given = upstream()->allocate(size_bytes, alignment);
    if (given == nullptr && quarantined_bytes() > 0) {
        release_blocks(true);
        given = upstream()->allocate(size_bytes, alignment);
    }
    return given;
}

Freed QuarantiningAdaptor::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    LiveBlock block;
    const Freed freed = live_.remove(pointer, std::max<size_t>(size_bytes, 1), alignment, block);
    if (freed == Freed::foreign && waiting_.contains(pointer))
        return Freed::already_free;
    if (freed != Freed::done)
        return freed;
    if (!shut(block)) {
        live_.restore(std::move(block));
        return Freed::damaged;
    }
    waiting_.add(std::move(block));
    release_blocks(false);
    return Freed::done;
}

void QuarantiningAdaptor::release_blocks(bool all) {
    LiveBlock block;
    while (waiting_.leaves(all, block))
        give_back(block);
}

Statistics QuarantiningAdaptor::statistics() const {
    const Statistics below = upstream()->statistics();
    return {live_.size_bytes(), live_.count(), below.reserved_bytes, below.touched_bytes};
}

size_t QuarantiningAdaptor::trim() {
    release_blocks(true);
    return upstream()->trim();
}

} // namespace tightship::resource
