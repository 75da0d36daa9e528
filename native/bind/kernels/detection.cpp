#include "bind.hpp"
#include "gil.hpp"
#include "tightship/kernels/detection/roi_align.hpp"
#include "tightship/kernels/detection/suppression.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <limits>
#include <optional>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using Boxes = nb::ndarray<const float, nb::shape<-1, -1, 4>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<const float, nb::shape<-1, -1, -1>, nb::c_contig, nb::device::cpu>;
using Room = nb::ndarray<uint8_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using kernels::Suppression;

/// Returns shapes and limits; throws nb::value_error unless the operands fit each other.
Suppression suppression_of(const Boxes &boxes, const Scores &scores, int64_t most) {
    if (scores.shape(0) != boxes.shape(0) || scores.shape(2) != boxes.shape(1))
        throw nb::value_error("scores are not those of each class of the boxes");
    if (boxes.shape(1) > std::numeric_limits<uint32_t>::max())
        throw nb::value_error("an image has 2**32 boxes or more");
    const auto length = [](size_t axis) { return static_cast<int64_t>(axis); };
    return {length(scores.shape(0)),
            length(scores.shape(1)),
            length(boxes.shape(1)),
            false,
            most < 0 ? 0 : most,
            0,
            0,
            false};
}

using Image = nb::ndarray<const float, nb::shape<-1, -1, -1, -1>, nb::c_contig, nb::device::cpu>;
using Regions = nb::ndarray<const float, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Owners = nb::ndarray<const int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using Aligned = nb::ndarray<float, nb::shape<-1, -1, -1, -1>, nb::c_contig, nb::device::cpu>;

void roi_align(const Image &image, const Regions &regions, const Owners &owners,
               const Aligned &target, int64_t samples, float scale, bool is_half_pixel,
               bool is_largest, int threads) {
    const auto size = [](const auto &array, size_t axis) {
        return static_cast<int64_t>(array.shape(axis));
    };
    if (size(owners, 0) != size(regions, 0) || size(target, 0) != size(regions, 0) ||
        size(target, 1) != size(image, 1))
        throw nb::value_error("regions, their images and the result do not fit");
    for (int64_t index = 0; index < size(owners, 0); ++index)
        if (owners.data()[index] < 0 || owners.data()[index] >= size(image, 0))
            throw nb::value_error("a region is of an image that is not there");
    if (image.size() == 0 || target.size() == 0)
        throw nb::value_error("an image, or the result, has no pixel");
    const kernels::RoiAlign settings{size(image, 0),  size(image, 1),   size(image, 2),
                                     size(image, 3),  size(regions, 0), size(target, 2),
                                     size(target, 3), samples,          scale,
                                     is_half_pixel,   is_largest};
    const GilReleased release;
    kernels::roi_align(settings, image.data(), regions.data(), owners.data(), target.data(),
                       threads);
}

} // namespace

void detection(nb::module_ &module) {
    module.def(
        "suppression_bytes",
        [](const Boxes &boxes, const Scores &scores, int64_t most) {
            const Suppression limits = suppression_of(boxes, scores, most);
            return std::pair(limits.rows_max() * 3 * int64_t{sizeof(int64_t)},
                             limits.scratch_bytes());
        },
        "boxes"_a, "scores"_a, "most"_a,
        "Return the bytes of rows and of scratch that `suppress` needs.");
    module.def("roi_align", &roi_align, "image"_a, "regions"_a, "owners"_a, "target"_a, "samples"_a,
               "scale"_a, "is_half_pixel"_a, "is_largest"_a, "threads"_a = 1,
               "Sample regions of images to one size; `samples` along an axis of a cell, 0 for one "
               "a pixel.");
    module.def(
        "suppress",
        [](const Boxes &boxes, const Scores &scores, int64_t most, float overlap,
           std::optional<float> least, bool is_centred, const Room &rows, const Room &scratch) {
            Suppression limits = suppression_of(boxes, scores, most);
            limits.overlap = overlap;
            limits.has_least = least.has_value();
            limits.least = least.value_or(0);
            limits.is_centred = is_centred;
            const auto room = [](const Room &each) { return static_cast<int64_t>(each.size()); };
            if (room(rows) < limits.rows_max() * 3 * int64_t{sizeof(int64_t)} ||
                room(scratch) < limits.scratch_bytes())
                throw nb::value_error("there is too little room for rows, or scratch");
            const GilReleased release;
            return kernels::suppress(limits, boxes.data(), scores.data(),
                                     reinterpret_cast<int64_t *>(rows.data()),
                                     reinterpret_cast<char *>(scratch.data()));
        },
        "boxes"_a, "scores"_a, "most"_a, "overlap"_a, "least"_a.none(), "is_centred"_a, "rows"_a,
        "scratch"_a,
        "Write rows (image, class, box) of non-maximum suppression to bytes; return their number.");
}

} // namespace tightship::bind
