#include "tightship/resource/adaptor/binning.hpp"

#include <algorithm>

namespace tightship::resource {

BinningResource::BinningResource(std::shared_ptr<MemoryResource> upstream, std::vector<Bin> bins)
    : Adaptor(std::move(upstream)), bins_(std::move(bins)) {
    size_t before = 0;
    std::vector<const MemoryResource *> seen{this->upstream().get()};
    for (const auto &[size_bytes, resource] : bins_) {
        const std::string named = "The bin of " + std::to_string(size_bytes) + " bytes ";
        if (size_bytes <= before)
            throw Misuse(named + "must come before that of " + std::to_string(before) + ".");
        if (size_bytes > resource->reach().size_bytes)
            throw Misuse(named + "is over a resource that never gives more than " +
                         std::to_string(resource->reach().size_bytes) + ".");
        if (std::ranges::find(seen, resource.get()) != seen.end())
            throw Misuse(named + "has the resource of another bin, or the upstream.");
        seen.push_back(resource.get());
        before = size_bytes;
    }
}

MemoryResource &BinningResource::part_of(size_t size_bytes, size_t alignment) const {
    for (const Bin &bin : bins_)
        if (size_bytes <= bin.size_bytes && alignment <= bin.resource->reach().alignment)
            return *bin.resource;
    return *upstream();
}

void *BinningResource::allocate(size_t size_bytes, size_t alignment) {
    return part_of(size_bytes, alignment).allocate(size_bytes, alignment);
}

Freed BinningResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    const Freed freed = part_of(size_bytes, alignment).deallocate(pointer, size_bytes, alignment);
    return freed == Freed::foreign ? owner_of(pointer).deallocate(pointer, size_bytes, alignment)
                                   : freed;
}

/// Returns the resource that an address belongs to; the upstream if it belongs to no bin.
MemoryResource &BinningResource::owner_of(const void *pointer) const {
    for (const Bin &bin : bins_)
        if (bin.resource->owns(pointer))
            return *bin.resource;
    return *upstream();
}

size_t BinningResource::size_of(const void *pointer) const {
    return owner_of(pointer).size_of(pointer);
}

Range BinningResource::range_of(const void *pointer) const {
    return owner_of(pointer).range_of(pointer);
}

Reach BinningResource::reach() const {
    Reach most = upstream()->reach();
    for (const Bin &bin : bins_) {
        most.size_bytes = std::max(most.size_bytes, bin.size_bytes);
        most.alignment = std::max(most.alignment, bin.resource->reach().alignment);
    }
    return most;
}

bool BinningResource::supports_free() const {
    return upstream()->supports_free() &&
           std::ranges::all_of(bins_, [](const Bin &bin) { return bin.resource->supports_free(); });
}

bool BinningResource::is_shared() const {
    return upstream()->is_shared() ||
           std::ranges::any_of(bins_, [](const Bin &bin) { return bin.resource->is_shared(); });
}

Statistics BinningResource::statistics() const {
    Statistics sum = upstream()->statistics();
    for (const Bin &bin : bins_) {
        const Statistics part = bin.resource->statistics();
        sum.current_bytes += part.current_bytes;
        sum.current_count += part.current_count;
        sum.reserved_bytes += part.reserved_bytes;
        sum.touched_bytes += part.touched_bytes;
    }
    return sum;
}

size_t BinningResource::trim() {
    size_t trimmed_bytes = upstream()->trim();
    for (const Bin &bin : bins_)
        trimmed_bytes += bin.resource->trim();
    return trimmed_bytes;
}

std::string BinningResource::refusal(size_t size_bytes, size_t alignment) const {
    return part_of(size_bytes, alignment).refusal(size_bytes, alignment);
}

size_t BinningResource::available_bytes() const {
    size_t sum = upstream()->available_bytes();
    for (const Bin &bin : bins_) {
        const size_t part = bin.resource->available_bytes();
        sum = part > SIZE_MAX - sum ? SIZE_MAX : sum + part;
    }
    return sum;
}

void BinningResource::each_upstream(const Visit &visit) const {
    visit(upstream());
    for (const Bin &bin : bins_)
        visit(bin.resource);
}

} // namespace tightship::resource
