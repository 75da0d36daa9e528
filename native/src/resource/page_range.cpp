#include "tightship/resource/page_range.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/map.hpp"
#include "tightship/os/os.hpp"

#include <algorithm>
#include <new>

namespace tightship::resource {

namespace {

/// Mappings that one call may add: it cuts one in three.
constexpr size_t kCut = 2;

} // namespace

PageRange::PageRange(size_t capacity_bytes) {
    const size_t page = os::page_size();
    capacity_bytes_ = std::max((capacity_bytes + page - 1) / page * page, page);
    start_ = capacity_bytes_ < capacity_bytes
                 ? nullptr
                 : static_cast<char *>(os::reserve(capacity_bytes_, page));
    if (start_ == nullptr)
        throw std::bad_alloc();
    if (!close(0, capacity_bytes_)) {
        os::release(start_, capacity_bytes_);
        throw std::bad_alloc();
    }
}

PageRange::~PageRange() {
    os::release(start_, capacity_bytes_);
}

bool PageRange::open(size_t start, size_t stop) {
    return start == stop || (os::may_map(kCut) && os::protect(start_ + start, stop - start, true));
}

bool PageRange::close(size_t start, size_t stop) {
    if (start == stop)
        return true;
    if (!os::show_zeros(start_ + start, stop - start))
        return false;
    os::use_small_pages(start_ + start, stop - start);
    return true;
}

void PageRange::discard(size_t start, size_t stop) {
    os::discard(start_ + start, stop - start);
}

bool PageRange::show(size_t start, size_t stop, int file, size_t offset_bytes) {
    return start == stop ||
           (os::may_split(kCut) && os::show_file(start_ + start, stop - start, file, offset_bytes));
}

} // namespace tightship::resource
