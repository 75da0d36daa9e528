#include "tightship/resource/committed_range.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/map.hpp"
#include "tightship/os/os.hpp"

#include <algorithm>
#include <cstdint>
#include <new>

namespace tightship::resource {

namespace {

size_t whole(size_t size_bytes, size_t unit) {
    return (size_bytes + unit - 1) / unit * unit;
}

} // namespace

CommittedRange::CommittedRange(size_t capacity_bytes)
    : capacity_bytes_(std::max(whole(capacity_bytes, os::page_size()), os::page_size())) {
    start_ = capacity_bytes_ < capacity_bytes
                 ? nullptr
                 : static_cast<char *>(os::reserve_pages(capacity_bytes_));
    if (start_ == nullptr)
        throw std::bad_alloc();
}

CommittedRange::~CommittedRange() {
    os::release(start_, capacity_bytes_);
}

bool CommittedRange::resize(size_t size_bytes) {
    if (size_bytes > capacity_bytes_)
        return false;
    size_t wanted = whole(size_bytes, os::page_size());
    if (wanted > size_bytes_) {
        if (!os::may_map(1) || !os::protect(start_ + size_bytes_, wanted - size_bytes_, true))
            return false;
        size_bytes_ = wanted;
        return true;
    }
    // The system gives a huge page back only as a whole.
    if (wanted >= os::kHugePage)
        wanted = whole(wanted, os::kHugePage);
    if (wanted < size_bytes_) {
        os::discard(start_ + wanted, size_bytes_ - wanted);
        os::protect(start_ + wanted, size_bytes_ - wanted, false);
        size_bytes_ = wanted;
    }
    return true;
}

size_t CommittedRange::discard(size_t start, size_t stop) {
    const auto base = reinterpret_cast<uintptr_t>(start_);
    const uintptr_t first = whole(base + start, os::kHugePage);
    const uintptr_t last = (base + stop) / os::kHugePage * os::kHugePage;
    return first < last ? os::discard(reinterpret_cast<void *>(first), last - first) : 0;
}

} // namespace tightship::resource
