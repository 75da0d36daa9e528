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
using Shares = std::vector<std::pair<Count, double>>;

void free_list(nb::module_ &module) {
    nb::class_<FreeListResource, MemoryResource>(
        module, "FreeListResource",
        "Blocks of any size that were given back, joined and cut to serve others.")
        .def(
            "__init__",
            [](FreeListResource *self, Upstream upstream, bool best_fit, Count chunk, bool first) {
                new (self) FreeListResource(
                    std::move(upstream),
                    {best_fit ? Fit::best : Fit::first, at_least(0, "chunk_bytes", chunk), first});
            },
            "upstream"_a, nb::kw_only(), "best_fit"_a = true, "chunk_bytes"_a = 0,
            "upstream_first"_a = false,
            "Serves from what came back, and asks `upstream` for the rest, at least `chunk_bytes`\n"
            "at once. `best_fit` false takes the first block of the plain list that is large\n"
            "enough; `upstream_first` uses the list only when upstream has no more.")
        .def_prop_ro("free_bytes", &FreeListResource::free_bytes)
        .def_prop_ro("free_count", &FreeListResource::free_count, "Blocks in the list.");
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
        "Slabs of several sizes, a bump for the rest, and a free list of what came back of it.")
        .def(
            "__init__",
            [](CompositeResource *self, Upstream upstream, Count size,
               const std::optional<Shares> &slabs, bool best_fit, bool free_list_last) {
                new (self) CompositeResource(std::move(upstream), at_least(1, "size_bytes", size),
                                             settings(slabs, best_fit, free_list_last));
            },
            "upstream"_a, "size_bytes"_a, nb::kw_only(), "slabs"_a.none() = nb::none(),
            "best_fit"_a = true, "free_list_last"_a = false,
            "Takes `size_bytes` of `upstream`. `slabs` are pairs of a block's bytes and the part "
            "of\n"
            "the region for such blocks, by rising size; `free_list_last` serves from what came\n"
            "back only when the bump is used up.")
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
        "Block sizes and shares of a composite that is told of none.");
    free_list(module);
    composite(module);
}

} // namespace tightship::bind
