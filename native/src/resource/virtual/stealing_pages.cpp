#include "tightship/resource/virtual/stealing_resource.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace tightship::resource {

namespace {

/// Bytes of addresses reserved at once, fewer if the system lacks them.
constexpr size_t kRangeBytes = size_t{1} << 40;

} // namespace

StealingVirtualResource::~StealingVirtualResource() {
    try {
        poll(settings_.patience);
    } catch (const std::bad_alloc &) { // no memory for fences, which cannot be waited for
    }
    std::array<PhysicalMemory *, 64> run; // a list of more could need memory
    for (const auto &range : blocks_.ranges()) {
        bool is_stuck = false;
        auto &pages = range->pages;
        for (size_t first = 0, count; first < pages.size(); first += std::max<size_t>(count, 1)) {
            const size_t most = std::min(run.size(), pages.size() - first);
            for (count = 0; count < most && pages[first + count] != nullptr; ++count)
                run[count] = pages[first + count].get();
            const size_t offset_bytes = first * settings_.page_bytes;
            size_t left = count;
            for (int attempt = 0; attempt < 2 && left > 0; ++attempt)
                left -= range->addresses->unmap(offset_bytes, std::span(run).first(left));
            is_stuck = is_stuck || left > 0; // and stays mapped for good
            for (size_t page = first; page < first + left; ++page)
                (void)pages[page].release();
            device_->destroy(std::span(pages).subspan(first + left, count - left));
        }
        if (is_stuck)
            (void)range->addresses.release();
    }
}

/// Adds a range of addresses; false if the system has none that holds `size_bytes`.
bool StealingVirtualResource::extend(size_t size_bytes) {
    const size_t least = align_up(size_bytes, settings_.page_bytes);
    for (size_t wanted = std::max(kRangeBytes, least);; wanted = std::max(wanted / 4, least)) {
        wanted &= ~(settings_.page_bytes - 1);
        if (auto addresses = device_->create_virtual_memory(wanted, settings_.page_bytes)) {
            const uintptr_t start = addresses->start(), stop = start + addresses->size_bytes();
            blocks_.add(std::move(addresses), settings_.page_bytes);
            low_.store(std::min(low_.load(), start), std::memory_order_relaxed);
            high_.store(std::max(high_.load(), stop), std::memory_order_relaxed);
            return true;
        }
        if (wanted == least)
            return false;
    }
}

/// Makes `count` pages available; false if the device lacks them.
bool StealingVirtualResource::gather(size_t count, const Request &request, const Site &site,
                                     bool may_create) {
    if (pages_.size() < count) {
        const size_t moved =
            steal(count - pages_.size(), site.start, site.start + request.size_bytes);
        statistics_.moved_count += moved;
        statistics_.remap_count += moved > 0;
    }
    if (pages_.size() >= count)
        return true;
    if (!may_create || count - pages_.size() > creatable_count())
        return false;
    pages_.reserve(count);
    while (pages_.size() < count)
        if (!create())
            return false;
    return true;
}

/// Returns how many pages the budget still allows.
size_t StealingVirtualResource::creatable_count() const {
    const size_t all_bytes = settings_.total != nullptr
                                 ? settings_.total->now_bytes.load(std::memory_order_relaxed)
                                 : statistics_.physical_bytes;
    const size_t held_bytes = std::min(settings_.max_bytes, all_bytes);
    return (settings_.max_bytes - held_bytes) / settings_.page_bytes;
}

bool StealingVirtualResource::create() {
    PhysicalTotal *const total = settings_.total.get();
    if (total != nullptr && !total->add(settings_.page_bytes, settings_.max_bytes))
        return false;
    auto page = device_->create_physical_memory(settings_.page_bytes);
    if (page == nullptr) {
        if (total != nullptr)
            total->subtract(settings_.page_bytes);
        return false;
    }
    pages_.push_back(std::move(page));
    ++statistics_.created_count;
    statistics_.physical_bytes += settings_.page_bytes;
    statistics_.peak_physical_bytes =
        std::max(statistics_.peak_physical_bytes, statistics_.physical_bytes);
    return true;
}

/// Unmaps unused pages of free blocks, those of the largest blocks first, except in `[start,
/// stop)`.
size_t StealingVirtualResource::steal(size_t count, uintptr_t start, uintptr_t stop) {
    const size_t page_bytes = settings_.page_bytes;
    std::vector<std::pair<uintptr_t, uintptr_t>> runs; // of whole pages
    FreeBlocks &free = blocks_.free_of(nullptr);
    size_t found = 0;
    const auto add = [&](uintptr_t from, uintptr_t to) {
        from = align_up(from, page_bytes);
        to &= ~(page_bytes - 1);
        if (from >= to || found >= count)
            return;
        from = std::max(from, to - std::min((count - found) * page_bytes, to - from));
        found += (to - from) / page_bytes;
        runs.emplace_back(from, to);
    };
    for (auto block = free.rbegin(); block != free.rend() && found < count; ++block) {
        if ((*block)->size_bytes < page_bytes)
            break;
        // Pages that the request itself will lie on stay, as do pages that it shares with others.
        add((*block)->start, std::min((*block)->stop(), start & ~(page_bytes - 1)));
        add(std::max((*block)->start, align_up(stop, page_bytes)), (*block)->stop());
    }
    const size_t before = pages_.size();
    pages_.reserve(before + found); // so that chunks the device has unmapped are not lost
    for (const auto &[from, to] : runs)
        if (!unmap(from, to))
            break;
    return pages_.size() - before;
}

/// Makes whole pages of a free block a hole; if the device refuses one, only those behind it.
bool StealingVirtualResource::unmap(uintptr_t start, uintptr_t stop) {
    Block *const block = blocks_.holding(start);
    AddressRange &range = *block->range;
    const size_t first = (start - range.addresses->start()) / settings_.page_bytes;
    const size_t count = (stop - start) / settings_.page_bytes;
    std::vector<PhysicalMemory *> chunks(count);
    for (size_t page = 0; page < count; ++page)
        chunks[page] = range.pages[first + page].get();
    const size_t left = count - range.addresses->unmap(first * settings_.page_bytes, chunks);
    if (left == count)
        return false;
    for (size_t page = left; page < count; ++page)
        pages_.push_back(std::move(range.pages[first + page]));
    start += left * settings_.page_bytes;
    events_.note(Action::unmapped, start, stop - start);
    Block *const hole = blocks_.cut(block, start, stop - start);
    hole->state = BlockState::hole;
    hole->user = nullptr;
    blocks_.settle(hole);
    return left == 0;
}

/// Maps the pages that a site lacks, and takes it. Pages mapped before the device refuses stay,
/// free.
Block *StealingVirtualResource::fill(const Request &request, const Site &site) {
    const uintptr_t stop = site.start + request.size_bytes;
    for (uintptr_t at = site.start; at < stop;) {
        Block *const block = blocks_.holding(at);
        if (block->state == BlockState::hole &&
            !fill_hole(block, at, std::min(stop, block->stop())))
            return nullptr;
        at = blocks_.holding(at)->stop();
    }
    Block *whole = nullptr;
    for (uintptr_t at = site.start; at < stop; at = whole->stop()) {
        Block *const block = blocks_.holding(at);
        Block *const part = blocks_.cut(block, at, std::min(stop, block->stop()) - at);
        whole = whole == nullptr ? part : blocks_.merge(whole, part);
    }
    return whole;
}

bool StealingVirtualResource::fill_hole(Block *hole, uintptr_t start, uintptr_t stop) {
    const size_t page_bytes = settings_.page_bytes;
    start &= ~(page_bytes - 1);
    stop = align_up(stop, page_bytes);
    AddressRange &range = *hole->range;
    const size_t first = (start - range.addresses->start()) / page_bytes;
    const size_t count = (stop - start) / page_bytes;
    assert(count <= pages_.size());
    if (range.pages.size() < first + count)
        range.pages.resize(first + count);
    std::vector<PhysicalMemory *> chunks(count);
    const size_t from = pages_.size() - count;
    for (size_t page = 0; page < count; ++page)
        chunks[page] = pages_[from + page].get();
    if (!range.addresses->map(first * page_bytes, chunks))
        return false;
    for (size_t page = 0; page < count; ++page)
        range.pages[first + page] = std::move(pages_[from + page]);
    pages_.resize(from);
    events_.note(Action::mapped, start, stop - start);
    Block *const part = blocks_.cut(hole, start, stop - start);
    part->state = BlockState::free;
    blocks_.settle(part);
    return true;
}

/// Gives free pages back until at most `left_bytes` are held, as far as no work uses them.
size_t StealingVirtualResource::release(size_t left_bytes) {
    const size_t before_bytes = statistics_.physical_bytes, page_bytes = settings_.page_bytes;
    release_all();
    poll(std::chrono::nanoseconds(0));
    if (before_bytes <= left_bytes)
        return 0;
    const size_t count = (before_bytes - left_bytes) / page_bytes;
    if (pages_.size() < count)
        steal(count - pages_.size(), 0, 0);
    const size_t going = std::min(count, pages_.size());
    device_->destroy(std::span(pages_).last(going));
    pages_.resize(pages_.size() - going);
    statistics_.physical_bytes -= going * page_bytes;
    if (settings_.total != nullptr)
        settings_.total->subtract(going * page_bytes);
    statistics_.released_count += going;
    return going * page_bytes;
}

/// Gives back memory not needed for `idle`, except `keep_bytes`.
void StealingVirtualResource::release_idle() {
    const auto now = std::chrono::steady_clock::now();
    if (now - needed_since_ < settings_.idle)
        return;
    release(needed_bytes_ + std::min(settings_.keep_bytes, SIZE_MAX - needed_bytes_));
    needed_since_ = now;
    needed_bytes_ = statistics_.allocated_bytes;
}

size_t StealingVirtualResource::trim() {
    Departed departed;
    const auto lock = device_->enter(mutex_);
    const size_t released_bytes = release(0);
    forget_streams(departed);
    return released_bytes;
}

} // namespace tightship::resource
