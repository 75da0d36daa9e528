#include "bind.hpp"
#include "count.hpp"
#include "fields.hpp"

#include "tightship/resource/adaptor/aligned.hpp"
#include "tightship/resource/adaptor/binning.hpp"
#include "tightship/resource/adaptor/combining.hpp"
#include "tightship/resource/adaptor/counting.hpp"
#include "tightship/resource/adaptor/failing.hpp"
#include "tightship/resource/adaptor/fallback.hpp"
#include "tightship/resource/adaptor/limiting.hpp"
#include "tightship/resource/adaptor/tracing.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::Adaptor;
using resource::AlignedResource;
using resource::BinningResource;
using resource::CombiningResource;
using resource::Counters;
using resource::FailingResource;
using resource::FallbackResource;
using resource::LimitingResource;
using resource::MemoryResource;
using resource::StatisticsResource;
using resource::TracingResource;

using Upstream = std::shared_ptr<MemoryResource>;

void limiting(nb::module_ &module) {
    nb::class_<LimitingResource, Adaptor>(module, "LimitingResource",
                                          "Limits the bytes that are live at a time.")
        .def(
            "__init__",
            [](LimitingResource *self, Upstream upstream, Amount limit, std::string setting) {
                new (self) LimitingResource(std::move(upstream), at_least(1, "limit_bytes", limit),
                                            std::move(setting));
            },
            "upstream"_a, "limit_bytes"_a, nb::kw_only(), "setting"_a = "",
            "Count requested bytes. Refusals name `setting` as the source of the limit.")
        .def_prop_ro("current_bytes", &LimitingResource::current_bytes)
        .def_prop_ro("limit_bytes", &LimitingResource::limit_bytes);
    nb::class_<AlignedResource, Adaptor>(module, "AlignedResource",
                                         "Aligns blocks more coarsely than requested.")
        .def(
            "__init__",
            [](AlignedResource *self, Upstream upstream, Count alignment, Amount threshold) {
                new (self)
                    AlignedResource(std::move(upstream), power_of_two("alignment", alignment),
                                    at_least(0, "threshold_bytes", threshold));
            },
            "upstream"_a, "alignment"_a, "threshold_bytes"_a = 0,
            "Align blocks of `threshold_bytes` and more to `alignment` at least.");
}

void counting(nb::module_ &module) {
    nb::class_<Counters>(
        module, "ResourceCounters",
        "Counters of blocks allocated within a scope: live now, at peak, and in total.")
        .def_ro("current_bytes", &Counters::current_bytes,
                "Live bytes; below 0 if blocks from before the scope were freed.")
        .def_ro("current_count", &Counters::current_count)
        .def_ro("peak_bytes", &Counters::peak_bytes)
        .def_ro("peak_count", &Counters::peak_count)
        .def_ro("total_bytes", &Counters::total_bytes)
        .def_ro("total_count", &Counters::total_count)
        .def("__repr__", &repr_of_fields);
    nb::class_<StatisticsResource, Adaptor>(module, "StatisticsResource",
                                            "Counts requests in nested scopes.")
        .def(nb::init<Upstream>(), "upstream"_a)
        .def("counters", &StatisticsResource::counters,
             "Return the counters of the innermost scope.")
        .def("push", &StatisticsResource::push,
             "Begin a scope at zero; return the number of open scopes.")
        .def(
            "pop",
            [](StatisticsResource &self, Count depth) {
                return self.pop(at_least(0, "depth", depth));
            },
            "depth"_a,
            "End the innermost scope, for which `push` returned `depth`, and add it to the "
            "one\naround it. Raises InputError if another scope is the innermost.");
}

void tracing(nb::module_ &module) {
    nb::class_<TracingResource, Adaptor>(
        module, "TracingResource",
        "Writes a CSV line for each call: `Thread,Time,Action,Pointer,Size,Stream`.")
        .def(nb::init<Upstream, const std::filesystem::path &>(), "upstream"_a, "path"_a,
             nb::sig("def __init__(self, upstream: MemoryResource, "
                     "path: str | os.PathLike[str]) -> None"),
             "Overwrite the file. Lines are buffered until `flush` or the resource's end.")
        .def("flush", &TracingResource::flush,
             "Write buffered lines; raises InputError if any line ever failed to be written.")
        .def_prop_ro("path", &TracingResource::path);
}

void failing(nb::module_ &module) {
    nb::class_<FailingResource, Adaptor>(module, "FailingResource",
                                         "Refuses chosen allocations, to test how callers cope.")
        .def(
            "__init__",
            [](FailingResource *self, Upstream upstream, Count first, Count count) {
                new (self) FailingResource(std::move(upstream), at_least(1, "first", first),
                                           at_least(0, "count", count));
            },
            "upstream"_a, "first"_a, "count"_a = 1,
            "Refuse `count` allocations from number `first` on, counted from 1.")
        .def_prop_ro("allocation_count", &FailingResource::allocation_count,
                     "Requests so far, refused ones included.");
}

void combining(nb::module_ &module) {
    nb::class_<CombiningResource, Adaptor>(
        module, "CombiningResource",
        "Combines concurrent requests: one of the threads serves all with one call.")
        .def(nb::init<Upstream>(), "upstream"_a)
        .def_prop_ro("handed_count", &CombiningResource::handed_count,
                     "Blocks that one thread obtained for another.");
}

void binning(nb::module_ &module) {
    using Bins = std::vector<std::pair<Amount, Upstream>>;
    nb::class_<BinningResource, Adaptor>(module, "BinningResource",
                                         "Serves sizes from different resources.")
        .def(
            "__init__",
            [](BinningResource *self, Upstream upstream, const Bins &bins) {
                std::vector<resource::Bin> made;
                for (const auto &[size, bin] : bins)
                    made.push_back({at_least(1, "size_bytes", size), bin});
                new (self) BinningResource(std::move(upstream), std::move(made));
            },
            "upstream"_a, "bins"_a,
            "Use `bins`, pairs of a largest size and a resource for it, in ascending "
            "order.\nLarger sizes go to `upstream`; a bin that is full refuses.");
}

void fallback(nb::module_ &module) {
    nb::class_<FallbackResource, Adaptor>(
        module, "FallbackResource",
        "Serves from one resource, and from another what the first refuses.")
        .def(nb::init<Upstream, Upstream>(), "first"_a, "second"_a,
             "Ask `first`, then `second` if that refuses. Each block goes back to the "
             "resource\nthat it came from.\n\nRaises InputError if both are the same resource.")
        .def_prop_ro("second", &FallbackResource::second)
        .def_prop_ro("second_count", &FallbackResource::second_count,
                     "Live blocks of the second resource.");
}

} // namespace

void adaptors(nb::module_ &module) {
    nb::class_<Adaptor, MemoryResource>(
        module, "Adaptor",
        "Base of resources that change the behaviour of their upstream and own no memory.")
        .def_prop_ro("upstream", &Adaptor::upstream);
    limiting(module);
    counting(module);
    tracing(module);
    failing(module);
    binning(module);
    fallback(module);
    combining(module);
    callback_resources(module);
    checking_adaptors(module);
}

} // namespace tightship::bind
