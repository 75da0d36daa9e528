#include "bind.hpp"
#include "count.hpp"

#include "tightship/resource/composite.hpp"
#include "tightship/resource/free_list.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::CompositeResource;
using resource::Fit;
using resource::FreeListResource;
using resource::MemoryResource;

using Upstream = std::shared_ptr<MemoryResource>;
using Shares = std::vector<std::pair<Amount, double>>;

void free_list(nb::module_ &module) {
    nb::class_<FreeListResource, MemoryResource>(
        module, "FreeListResource",
        "Serves requests from freed blocks of any size, which it joins and splits.")
        .def(
            "__init__",
            [](FreeListResource *self, Upstream upstream, bool best_fit, Amount chunk, bool first) {
                new (self) FreeListResource(
                    std::move(upstream),
                    {best_fit ? Fit::best : Fit::first, at_least(0, "chunk_bytes", chunk), first});
            },
            "upstream"_a, nb::kw_only(), "best_fit"_a = true, "chunk_bytes"_a = 0,
            "upstream_first"_a = false,
            "Serve from freed blocks, then from `upstream`, at least `chunk_bytes` at once. "
            "Without\n`best_fit` the first block of the list that is large enough is "
            "taken;\n`upstream_first` uses the list only when upstream refuses.")
        .def_prop_ro("free_bytes", &FreeListResource::free_bytes)
        .def_prop_ro("free_count", &FreeListResource::free_count, "Number of blocks in the list.");
}

CompositeResource::Settings settings(const std::optional<Shares> &shares, bool best_fit,
                                     bool free_list_last) {
    CompositeResource::Settings made;
    made.fit = best_fit ? Fit::best : Fit::first;
    made.free_list_last = free_list_last;
    if (shares) {
        made.slabs.clear();
        for (const auto &[block_bytes, share] : *shares)
            made.slabs.push_back({at_least(1, "block_bytes", block_bytes), share});
    }
    return made;
}

void composite(nb::module_ &module) {
    nb::class_<CompositeResource, MemoryResource>(
        module, "CompositeResource",
        "Slabs of several sizes, a bump for other sizes, and a free list of its freed blocks.")
        .def(
            "__init__",
            [](CompositeResource *self, Upstream upstream, Amount size,
               const std::optional<Shares> &slabs, bool best_fit, bool free_list_last) {
                new (self) CompositeResource(std::move(upstream), at_least(1, "size_bytes", size),
                                             settings(slabs, best_fit, free_list_last));
            },
            "upstream"_a, "size_bytes"_a, nb::kw_only(), "slabs"_a.none() = nb::none(),
            "best_fit"_a = true, "free_list_last"_a = false,
            "Take `size_bytes` of `upstream`. `slabs` are pairs of a block's bytes and its share "
            "of\nthe region, in ascending order; `free_list_last` serves from freed blocks only "
            "when\nthe bump is used up.")
        .def_prop_ro("slabs", &CompositeResource::slabs)
        .def_prop_ro("bump", &CompositeResource::bump)
        .def_prop_ro("free_list", &CompositeResource::free_list);
}

} // namespace

void composed_resources(nb::module_ &module) {
    module.def(
        "default_slabs",
        [] {
            std::vector<std::pair<size_t, double>> shares;
            for (const auto &[block_bytes, share] : CompositeResource::default_slabs())
                shares.emplace_back(block_bytes, share);
            return shares;
        },
        "Return the default block sizes and shares of a composite.");
    free_list(module);
    composite(module);
}

} // namespace tightship::bind
