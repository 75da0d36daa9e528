#include "tightship/resource/composite.hpp"

#include "tightship/os/os.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

constexpr size_t kSlabCountMax = 64;
constexpr size_t kSlabBytesMax = size_t{64} << 10;

void check(const std::vector<SlabShare> &shares) {
    double sum = 0;
    size_t before = 0;
    for (const auto &[block_bytes, share] : shares) {
        if (block_bytes <= before || block_bytes > kSlabBytesMax || block_bytes % 8 != 0)
            throw Misuse("Slabs must rise in size, by multiples of 8 up to " +
                         std::to_string(kSlabBytesMax) + ": a slab of " +
                         std::to_string(block_bytes) + " bytes follows one of " +
                         std::to_string(before) + ".");
        if (!(share > 0 && share < 1))
            throw Misuse("The share of slab " + std::to_string(block_bytes) +
                         " (= " + std::to_string(share) + ") must be above 0 and below 1.");
        before = block_bytes;
        sum += share;
    }
    if (shares.size() > kSlabCountMax || sum >= 1)
        throw Misuse("The shares of " + std::to_string(shares.size()) + " slabs (sum " +
                     std::to_string(sum) + ") must leave room for larger blocks: at most " +
                     std::to_string(kSlabCountMax) + " slabs, of less than 1 in all.");
}

} // namespace

std::vector<SlabShare> CompositeResource::default_slabs() {
    return {{16, 0.01},  {32, 0.01},  {64, 0.02},   {128, 0.02},
            {256, 0.01}, {512, 0.01}, {1024, 0.01}, {2048, 0.01}};
}

CompositeResource::CompositeResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes,
                                     Settings settings)
    : is_shared_(upstream->is_shared()) {
    check(settings.slabs);
    const size_t page = os::page_size();
    region_.obtain(std::move(upstream), size_bytes, page);
    char *next = region_.start();
    char *const stop = next + size_bytes;
    for (const auto &[block_bytes, share] : settings.slabs) {
        const auto wanted = static_cast<size_t>(static_cast<double>(size_bytes) * share);
        const size_t bytes = wanted / page * page;
        if (bytes < 64 * block_bytes)
            continue; // less than a word of blocks: its requests go to the next slab
        auto part = std::make_shared<RegionResource>(next, bytes, is_shared_);
        slabs_.push_back(std::make_shared<SlabResource>(std::move(part), bytes, block_bytes));
        next += bytes;
    }
    slabs_stop_ = next;
    slab_bytes_max_ = slabs_.empty() ? 0 : slabs_.back()->block_bytes();
    class_bytes_max_ = std::min(slab_bytes_max_, SlabResource::kNoted);
    for (size_t size = kStep, slab = 0; size <= slab_bytes_max_; size += kStep) {
        slab += slabs_[slab]->block_bytes() < size;
        classes_.push_back(slabs_[slab].get());
    }
    const auto rest = static_cast<size_t>(stop - next);
    bump_ = std::make_shared<BumpResource>(std::make_shared<RegionResource>(next, rest, is_shared_),
                                           rest, 1);
    rest_ = std::make_shared<FreeListResource>(
        bump_,
        FreeListResource::Settings{.fit = settings.fit, .upstream_first = settings.free_list_last});
}

void *CompositeResource::allocate(size_t size_bytes, size_t alignment) {
    if (has_class(size_bytes)) [[likely]] {
        SlabResource *slab = class_of(size_bytes);
        if (alignment <= slab->alignment()) [[likely]]
            return slab->from_cache(size_bytes,
                                    [&] { return allocate_slowly(size_bytes, alignment); });
    }
    return allocate_slowly(size_bytes, alignment);
}

size_t CompositeResource::serving_slabs(SlabResource *(&found)[2], size_t size_bytes,
                                        size_t alignment) const {
    size_t count = 0;
    for (const auto &slab : slabs_)
        if (count < 2 && slab->serves(size_bytes, alignment))
            found[count++] = slab.get();
    return count;
}

void *CompositeResource::allocate_slowly(size_t size_bytes, size_t alignment) {
    if (size_bytes > slab_bytes_max_)
        return rest_->allocate(size_bytes, alignment);
    SlabResource *slabs[2];
    const size_t count = serving_slabs(slabs, size_bytes, alignment);
    for (size_t index = 0; index < count; ++index)
        if (void *pointer = slabs[index]->allocate(size_bytes, alignment))
            return pointer;
    return rest_->allocate(size_bytes, alignment);
}

MemoryResource &CompositeResource::part_of(const void *pointer) const {
    if (static_cast<const char *>(pointer) < slabs_stop_)
        for (const auto &slab : slabs_)
            if (slab->contains(pointer))
                return *slab;
    return *rest_;
}

Freed CompositeResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    if (has_class(size_bytes)) [[likely]]
        if (class_of(size_bytes)->to_cache(pointer, size_bytes, alignment)) [[likely]]
            return Freed::done;
    return deallocate_slowly(pointer, size_bytes, alignment);
}

Freed CompositeResource::deallocate_slowly(void *pointer, size_t size_bytes, size_t alignment) {
    return part_of(pointer).deallocate(pointer, size_bytes, alignment);
}

size_t CompositeResource::allocate_many(void **blocks, size_t count, size_t size_bytes,
                                        size_t alignment) {
    SlabResource *slabs[2];
    const size_t serving = serving_slabs(slabs, size_bytes, alignment);
    size_t given = 0;
    for (size_t index = 0; index < serving && given < count; ++index)
        given += slabs[index]->allocate_many(blocks + given, count - given, size_bytes, alignment);
    return given + rest_->allocate_many(blocks + given, count - given, size_bytes, alignment);
}

FreedMany CompositeResource::deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                                             size_t alignment) {
    FreedMany freed;
    for (size_t first = 0, last; first < count; first = last) {
        MemoryResource &part = part_of(blocks[first]);
        for (last = first + 1; last < count && &part_of(blocks[last]) == &part; ++last)
            ;
        freed.note(part.deallocate_many(blocks + first, last - first, size_bytes, alignment));
    }
    return freed;
}

size_t CompositeResource::size_of(const void *pointer) const {
    return part_of(pointer).size_of(pointer);
}

Range CompositeResource::range_of(const void *pointer) const {
    return part_of(pointer).range_of(pointer);
}

Statistics CompositeResource::statistics() const {
    Statistics sum = rest_->statistics();
    sum.touched_bytes = bump_->statistics().touched_bytes;
    for (const auto &slab : slabs_) {
        const Statistics one = slab->statistics();
        sum.current_bytes += one.current_bytes;
        sum.current_count += one.current_count;
        sum.touched_bytes += one.touched_bytes;
    }
    sum.reserved_bytes = region_.size_bytes();
    return sum;
}

std::string CompositeResource::refusal(size_t size_bytes, size_t alignment) const {
    const Statistics now = statistics();
    return std::to_string(now.current_bytes) + " of " + std::to_string(now.reserved_bytes) +
           " bytes are in use; of the part for larger blocks, " +
           rest_->refusal(size_bytes, alignment);
}

} // namespace tightship::resource
