#include "bind.hpp"
#include "count.hpp"

#include "tightship/resource/adaptor/aligned.hpp"
#include "tightship/resource/adaptor/binning.hpp"
#include "tightship/resource/adaptor/combining.hpp"
#include "tightship/resource/adaptor/counting.hpp"
#include "tightship/resource/adaptor/failing.hpp"
#include "tightship/resource/adaptor/fallback.hpp"
#include "tightship/resource/adaptor/limiting.hpp"
#include "tightship/resource/adaptor/tracing.hpp"

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
                                          "No more than so many bytes at a time.")
        .def(
            "__init__",
            [](LimitingResource *self, Upstream upstream, Count limit, std::string setting) {
                new (self) LimitingResource(std::move(upstream), at_least(1, "limit_bytes", limit),
                                            std::move(setting));
            },
            "upstream"_a, "limit_bytes"_a, nb::kw_only(), "setting"_a = "",
            "Bytes count as they are asked for. Refusals name `setting` as what sets the limit.")
        .def_prop_ro("current_bytes", &LimitingResource::current_bytes)
        .def_prop_ro("limit_bytes", &LimitingResource::limit_bytes);
    nb::class_<AlignedResource, Adaptor>(module, "AlignedResource",
                                         "Coarser alignment than is asked for.")
        .def(
            "__init__",
            [](AlignedResource *self, Upstream upstream, Count alignment, Count threshold) {
                new (self)
                    AlignedResource(std::move(upstream), power_of_two("alignment", alignment),
                                    at_least(0, "threshold_bytes", threshold));
            },
            "upstream"_a, "alignment"_a, "threshold_bytes"_a = 0,
            "Blocks of `threshold_bytes` and more are at multiples of `alignment` at least.");
}

void counting(nb::module_ &module) {
    nb::class_<Counters>(module, "ResourceCounters",
                         "Of blocks that came within a scope: live now, at most, and in all.")
        .def_ro("current_bytes", &Counters::current_bytes, "Below 0 where older blocks ended.")
        .def_ro("current_count", &Counters::current_count)
        .def_ro("peak_bytes", &Counters::peak_bytes)
        .def_ro("peak_count", &Counters::peak_count)
        .def_ro("total_bytes", &Counters::total_bytes)
        .def_ro("total_count", &Counters::total_count);
    nb::class_<StatisticsResource, Adaptor>(module, "StatisticsResource",
                                            "Counts what is asked for, in scopes.")
        .def(nb::init<Upstream>(), "upstream"_a)
        .def("counters", &StatisticsResource::counters, "Of the innermost scope.")
        .def("push", &StatisticsResource::push,
             "Begins a scope at zero; returns how many there are now.")
        .def(
            "pop",
            [](StatisticsResource &self, Count depth) {
                return self.pop(at_least(0, "depth", depth));
            },
            "depth"_a,
            "Ends the innermost scope, which `push` called `depth`, and adds it to the one around\n"
            "it. Raises InputError where that is not the innermost.");
}

void tracing(nb::module_ &module) {
    nb::class_<TracingResource, Adaptor>(
        module, "TracingResource",
        "A CSV line for each call: `Thread,Time,Action,Pointer,Size,Stream`.")
        .def(nb::init<Upstream, const std::string &>(), "upstream"_a, "path"_a,
             "Writes over the file. Lines are held back until `flush`, or the resource's end.")
        .def("flush", &TracingResource::flush,
             "Raises InputError where a line could not be written, ever.")
        .def_prop_ro("path", &TracingResource::path);
}

void failing(nb::module_ &module) {
    nb::class_<FailingResource, Adaptor>(module, "FailingResource", "Refuses on purpose.")
        .def(
            "__init__",
            [](FailingResource *self, Upstream upstream, Count first, Count count) {
                new (self) FailingResource(std::move(upstream), at_least(1, "first", first),
                                           at_least(0, "count", count));
            },
            "upstream"_a, "first"_a, "count"_a = 1,
            "Refuses `count` allocations from number `first` on, counted from 1.")
        .def_prop_ro("allocation_count", &FailingResource::allocation_count,
                     "Asked for so far, refused ones included.");
}

void combining(nb::module_ &module) {
    nb::class_<CombiningResource, Adaptor>(
        module, "CombiningResource",
        "Threads that ask at the same time are served by one of them, with one call.")
        .def(nb::init<Upstream>(), "upstream"_a)
        .def_prop_ro("handed_count", &CombiningResource::handed_count,
                     "Blocks that a thread was handed by another.");
}

void binning(nb::module_ &module) {
    using Bins = std::vector<std::pair<Count, Upstream>>;
    nb::class_<BinningResource, Adaptor>(module, "BinningResource",
                                         "Sizes that go to resources of their own.")
        .def(
            "__init__",
            [](BinningResource *self, Upstream upstream, const Bins &bins) {
                std::vector<resource::Bin> made;
                for (const auto &[size, bin] : bins)
                    made.push_back({at_least(1, "size_bytes", size), bin});
                new (self) BinningResource(std::move(upstream), std::move(made));
            },
            "upstream"_a, "bins"_a,
            "`bins` are pairs of the largest size that goes to a resource, and the resource, by\n"
            "rising size. What has no bin goes to `upstream`; a bin that is full refuses.");
}

void fallback(nb::module_ &module) {
    nb::class_<FallbackResource, Adaptor>(module, "FallbackResource",
                                          "One resource, and another for what it refuses.")
        .def(nb::init<Upstream, Upstream>(), "first"_a, "second"_a,
             "Asks `first`, and `second` where that has no block. Each block goes back to the one\n"
             "that gave it.\n\n"
             "Raises InputError where both are the same resource.")
        .def_prop_ro("second", &FallbackResource::second)
        .def_prop_ro("second_count", &FallbackResource::second_count,
                     "Live blocks of the second one.");
}

} // namespace

void adaptors(nb::module_ &module) {
    nb::class_<Adaptor, MemoryResource>(module, "Adaptor",
                                        "Changes how its upstream behaves; owns no memory.")
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
