#include "tightship/resource/bump.hpp"

#include "tightship/os/os.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <thread>

namespace tightship::resource {

namespace {

constexpr size_t kGranule = kDefaultAlignment;
constexpr size_t kBumpLine = 64;
constexpr size_t kPartBytesMax = size_t{std::numeric_limits<uint32_t>::max()} * kGranule;

size_t used_bytes(uint64_t word) {
    return static_cast<uint32_t>(word) * kGranule;
}

uint64_t used_granules(size_t bytes) {
    return bytes / kGranule;
}

/// Returns the requested number of parts, or one for each processor, each large enough for a huge
/// page.
size_t parts_for(size_t size_bytes, size_t part_count) {
    if (part_count == 0)
        part_count = std::clamp<size_t>(size_bytes >> 21, 1, std::thread::hardware_concurrency());
    return std::max(part_count, size_bytes / kPartBytesMax + 1);
}

} // namespace

BumpResource::BumpResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes,
                           size_t part_count, std::shared_ptr<MemoryResource> control)
    : is_shared_(upstream->is_shared()), region_(std::move(upstream), size_bytes, kBumpLine) {
    part_count = parts_for(size_bytes, part_count);
    const size_t control_bytes = part_count * sizeof(Cursor);
    const size_t inside_bytes = control == nullptr ? control_bytes : 0;
    if (size_bytes > inside_bytes)
        part_bytes_ = (size_bytes - inside_bytes) / part_count / kGranule * kGranule;
    if (part_bytes_ == 0)
        throw Misuse("`size_bytes` (= " + std::to_string(size_bytes) + ") has no room for " +
                     std::to_string(part_count) + " parts and their cursors: " +
                     std::to_string(control_bytes + part_count * kGranule) + " bytes are needed.");
    char *cursors = region_.start();
    if (control != nullptr) {
        control_.obtain(std::move(control), control_bytes, kBumpLine);
        cursors = control_.start();
    }
    start_ = reinterpret_cast<uintptr_t>(region_.start()) + inside_bytes;
    for (size_t part = 0; part < part_count; ++part)
        cursors_.push_back(new (cursors + part * sizeof(Cursor)) Cursor);
}

void *BumpResource::allocate(size_t size_bytes, size_t alignment) {
    return take({std::max<size_t>(size_bytes, 1), alignment, 1});
}

size_t BumpResource::allocate_many(void **blocks, size_t count, size_t size_bytes,
                                   size_t alignment) {
    const size_t stride = align_up(std::max<size_t>(size_bytes, 1), std::max(alignment, kGranule));
    size_t obtained = 0;
    while (obtained < count && stride != 0 && stride <= capacity_bytes()) {
        const size_t room = std::min(count - obtained, part_bytes_ / stride);
        char *pointer = room > 1 ? take({stride * room, alignment, room}) : nullptr;
        if (pointer == nullptr)
            break;
        for (size_t index = 0; index < room; ++index)
            blocks[obtained++] = pointer + index * stride;
    }
    return obtained + MemoryResource::allocate_many(blocks + obtained, count - obtained, size_bytes,
                                                    alignment);
}

char *BumpResource::take(const Asked &asked) {
    if (asked.size_bytes > capacity_bytes() || asked.alignment > capacity_bytes())
        return nullptr;
    const size_t count = cursors_.size();
    const size_t own = os::current_cpu() % count;
    for (size_t distance = 0; distance < count; ++distance) {
        if (own + distance < count)
            if (char *pointer = from_part(own + distance, asked))
                return pointer;
        if (distance > 0 && distance <= own)
            if (char *pointer = from_part(own - distance, asked))
                return pointer;
    }
    return count > 1 ? from_parts(asked) : nullptr;
}

char *BumpResource::from_part(size_t part, const Asked &asked) {
    const uintptr_t start = start_of(part);
    std::atomic<uint64_t> &cursor = cursors_[part]->word;
    uint64_t word = cursor.load(std::memory_order_relaxed);
    for (;;) {
        const uintptr_t block =
            align_up(start + used_bytes(word), std::max(asked.alignment, kGranule));
        if (block - start > part_bytes_ || asked.size_bytes > part_bytes_ - (block - start))
            return nullptr;
        const size_t used = align_up(block + asked.size_bytes, kGranule) - start;
        const uint64_t blocks = (word >> 32) + asked.count;
        const uint64_t next = blocks << 32 | used_granules(used);
        if (cursor.compare_exchange_weak(word, next, std::memory_order_acq_rel))
            return reinterpret_cast<char *>(block);
    }
}

bool BumpResource::allocate_at(const void *start, size_t size_bytes) {
    const size_t before = reinterpret_cast<uintptr_t>(start) - start_;
    if (before == 0 || before > capacity_bytes())
        return false;
    const size_t part = (before - 1) / part_bytes_, used = before - part * part_bytes_;
    if (size_bytes > part_bytes_ - used)
        return false;
    std::atomic<uint64_t> &cursor = cursors_[part]->word;
    uint64_t word = cursor.load(std::memory_order_relaxed);
    const uint64_t blocks = (word >> 32) + 1;
    const uint64_t next = blocks << 32 | used_granules(align_up(used + size_bytes, kGranule));
    return used_bytes(word) == used &&
           cursor.compare_exchange_strong(word, next, std::memory_order_acq_rel);
}

char *BumpResource::from_parts(const Asked &asked) {
    for (size_t first = 0; first + 1 < cursors_.size(); ++first)
        if (char *pointer = over_parts(first, asked))
            return pointer;
    return nullptr;
}

/// Allocates a block that starts in part `first` and ends in a later one; the parts after the first
/// were unused. All parts are closed meanwhile, so no other thread moves their cursors.
char *BumpResource::over_parts(size_t first, const Asked &asked) {
    const uint64_t full = used_granules(part_bytes_);
    const uint64_t word = cursors_[first]->word.load(std::memory_order_relaxed);
    const uintptr_t block =
        align_up(start_of(first) + used_bytes(word), std::max(asked.alignment, kGranule));
    const uintptr_t stop = align_up(block + asked.size_bytes, kGranule);
    if (block >= start_of(first + 1) || stop < block || stop > start_of(cursors_.size()))
        return nullptr;
    const size_t last = (stop - 1 - start_) / part_bytes_;
    size_t closed = first;
    uint64_t before = word;
    for (; closed <= last; ++closed, before = 0) {
        const uint64_t blocks = closed == first ? (word >> 32) + asked.count : 0;
        if (!cursors_[closed]->word.compare_exchange_strong(before, blocks << 32 | full,
                                                            std::memory_order_acq_rel))
            break;
    }
    if (closed > last) {
        const uint64_t blocks = last == first ? (word >> 32) + asked.count : 0;
        cursors_[last]->word.store(blocks << 32 | used_granules(stop - start_of(last)),
                                   std::memory_order_release);
        return reinterpret_cast<char *>(block);
    }
    while (closed-- > first)
        cursors_[closed]->word.store(closed == first ? word : 0, std::memory_order_release);
    return nullptr;
}

Freed BumpResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    if (!owns(pointer))
        return Freed::foreign;
    const size_t size_max = size_of(pointer);
    if (size_max == 0)
        return Freed::not_a_block;
    if (size_bytes > size_max)
        return Freed::wrong_size;
    return is_aligned(pointer, alignment) ? Freed::done : Freed::wrong_alignment;
}

/// Returns the bytes of a block, which may lie over several parts, all of them full but the last.
size_t BumpResource::size_of(const void *pointer) const {
    const size_t offset = reinterpret_cast<uintptr_t>(pointer) - start_;
    if (offset >= capacity_bytes() || offset % kGranule != 0)
        return 0;
    size_t part = offset / part_bytes_, stop = 0;
    do {
        stop = part * part_bytes_ + used_bytes(cursors_[part]->word.load());
    } while (stop == ++part * part_bytes_ && part < cursors_.size());
    return stop > offset ? stop - offset : 0;
}

Range BumpResource::range_of(const void *pointer) const {
    const Range range{start_, capacity_bytes()};
    return range.contains(pointer) ? range : Range{};
}

size_t BumpResource::used_in_all() const {
    size_t bytes = 0;
    for (const Cursor *cursor : cursors_)
        bytes += used_bytes(cursor->word.load(std::memory_order_relaxed));
    return bytes;
}

Statistics BumpResource::statistics() const {
    Statistics sum;
    sum.reserved_bytes = capacity_bytes();
    for (const Cursor *cursor : cursors_) {
        const uint64_t word = cursor->word.load(std::memory_order_relaxed);
        sum.current_bytes += used_bytes(word);
        sum.current_count += word >> 32;
    }
    sum.touched_bytes = std::max(sum.current_bytes, touched_bytes_.load());
    return sum;
}

void BumpResource::reset() {
    const std::lock_guard lock(marks_mutex_);
    marks_.clear();
    touched_bytes_ = std::max(touched_bytes_.load(), used_in_all());
    for (Cursor *cursor : cursors_)
        cursor->word.store(0, std::memory_order_release);
}

uint64_t BumpResource::mark() {
    const std::lock_guard lock(marks_mutex_);
    Mark made{++last_serial_, {}};
    for (const Cursor *cursor : cursors_)
        made.words.push_back(cursor->word.load(std::memory_order_acquire));
    marks_.push_back(std::move(made));
    return last_serial_;
}

bool BumpResource::rewind(uint64_t mark) {
    const std::lock_guard lock(marks_mutex_);
    const auto found = std::find_if(marks_.begin(), marks_.end(),
                                    [mark](const Mark &made) { return made.serial == mark; });
    if (found == marks_.end())
        return false;
    touched_bytes_ = std::max(touched_bytes_.load(), used_in_all());
    for (size_t part = 0; part < cursors_.size(); ++part)
        cursors_[part]->word.store(found->words[part], std::memory_order_release);
    marks_.erase(found + 1, marks_.end());
    return true;
}

} // namespace tightship::resource
