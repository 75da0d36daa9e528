#include "bind.hpp"
#include "count.hpp"

#include "tightship/os/map.hpp"
#include "tightship/os/os.hpp"
#include "tightship/resource/page_range.hpp"

#include <nanobind/ndarray.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

using resource::PageRange;

namespace {

using Bounds = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Ranges of whole pages, as numbers of pages.
struct Runs {
    const int64_t *starts, *stops;
    size_t count;
    size_t page = os::page_size();

    Runs(const PageRange &range, const Bounds &first, const Bounds &last)
        : starts(first.data()), stops(last.data()), count(first.shape(0)) {
        if (last.shape(0) != count)
            throw resource::Misuse("`starts` and `stops` have different lengths.");
        const auto pages = static_cast<int64_t>(range.capacity_bytes() / page);
        for (size_t i = 0; i < count; ++i)
            if (starts[i] < 0 || starts[i] > stops[i] || stops[i] > pages)
                throw resource::Misuse("Pages [" + std::to_string(starts[i]) + ", " +
                                       std::to_string(stops[i]) + ") are not among the " +
                                       std::to_string(pages) + " of the range.");
    }

    /// Calls `action` for each range in bytes; returns how many calls returned true before the
    /// first that did not.
    template <typename Action> size_t each(const Action &action) const {
        for (size_t i = 0; i < count; ++i)
            if (!action(i, static_cast<size_t>(starts[i]) * page,
                        static_cast<size_t>(stops[i]) * page))
                return i;
        return count;
    }
};

/// Adds the methods that show pages of a file.
void showing(nb::class_<PageRange> &range) {
    range
        .def(
            "show",
            [](PageRange &self, const Bounds &starts, const Bounds &stops, int file,
               const Bounds &offsets) {
                const Runs runs(self, starts, stops);
                if (offsets.shape(0) != runs.count)
                    throw resource::Misuse("`starts` and `offsets` have different lengths.");
                return runs.each([&](size_t i, size_t start, size_t stop) {
                    return self.show(start, stop, file,
                                     static_cast<size_t>(offsets.data()[i]) * runs.page);
                });
            },
            "starts"_a, "stops"_a, "file"_a, "offsets"_a,
            "Show pages of a file from page `offsets` on, to be read only. Returns how many ranges "
            "are\nshown; a further one was refused and is as it was.")
        .def_static(
            "free",
            [](int file, Count start, Count count) {
                return os::punch_hole(file, at_least(0, "start", start) * os::page_size(),
                                      at_least(1, "count", count) * os::page_size());
            },
            "file"_a, "start"_a, "count"_a,
            "Give the memory of a file's pages from `start` on back. Returns False if its file "
            "system\ncannot.")
        .def(
            "array",
            [](nb::handle_t<PageRange> self) {
                const auto &range = nb::cast<const PageRange &>(self);
                return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(range.start(),
                                                                    {range.capacity_bytes()}, self);
            },
            "Return all bytes as a uint8 array that keeps the range alive; only those of open "
            "pages\nmay be written.");
}

} // namespace

void page_range(nb::module_ &module) {
    nb::class_<PageRange> range(
        module, "PageRange",
        "Addresses whose small pages are backed, given back and replaced by a "
        "file's.\n\nRanges of pages are two int64 arrays, of first pages and of "
        "those behind the last.");
    range
        .def(
            "__init__",
            [](PageRange *self, Count capacity) {
                new (self) PageRange(at_least(0, "capacity_bytes", capacity));
            },
            "capacity_bytes"_a,
            "Reserve whole pages of addresses, all closed.\n\nRaises MemoryError if the system "
            "refuses.")
        .def_prop_ro("capacity_bytes", &PageRange::capacity_bytes)
        .def(
            "open",
            [](PageRange &self, const Bounds &starts, const Bounds &stops) {
                return Runs(self, starts, stops).each([&](size_t, size_t start, size_t stop) {
                    return self.open(start, stop);
                });
            },
            "starts"_a, "stops"_a,
            "Open closed pages, which are private and zero. Returns how many ranges were opened "
            "before\nthe system refused.")
        .def(
            "close",
            [](PageRange &self, const Bounds &starts, const Bounds &stops) {
                return Runs(self, starts, stops).each([&](size_t, size_t start, size_t stop) {
                    return self.close(start, stop);
                });
            },
            "starts"_a, "stops"_a,
            "Close pages of any kind; their contents are lost. Returns how many ranges were "
            "closed\nbefore the system refused.")
        .def(
            "discard",
            [](PageRange &self, const Bounds &starts, const Bounds &stops) {
                Runs(self, starts, stops).each([&](size_t, size_t start, size_t stop) {
                    self.discard(start, stop);
                    return true;
                });
            },
            "starts"_a, "stops"_a,
            "Make open pages zero and give their memory back; they stay open.");
    showing(range);
}

} // namespace tightship::bind
