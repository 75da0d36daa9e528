/// Operators of detectors.
#include "tightship/kernels/detection/roi_align.hpp"
#include "tightship/sized/operators.hpp"

#include "tightship/kernels/detection/suppression.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tightship::kernels {

namespace {

using enum ElementType;

/// RoiAlign; settings: rows, columns, samples, whether coordinates count from a pixel's corner,
/// whether the largest tap counts; and the scale.
bool aligned(const SizedSettings &settings, Operands operands, Results results,
             const TensorRoom &room, int threads) {
    const Tensor &image = *operands[0], &regions = *operands[1], &owners = *operands[2];
    if (image.type != kFloat32 || regions.type != kFloat32 || owners.type != kInt64 ||
        image.rank != 4 || regions.rank != 2 || owners.rank != 1 || regions.lengths[1] != 4 ||
        owners.lengths[0] != regions.lengths[0] || image.count() == 0)
        return false;
    const auto &sizes = settings.integers;
    const int64_t shape[] = {regions.lengths[0], image.lengths[1], sizes[0], sizes[1]};
    for (int64_t index = 0; index < shape[0]; ++index)
        if (owners.as<int64_t>()[index] < 0 || owners.as<int64_t>()[index] >= image.lengths[0])
            return false;
    results[0] = room.make(kFloat32, shape);
    if (results[0].count() == 0)
        return true;
    const RoiAlign align{
        image.lengths[0], image.lengths[1], image.lengths[2],
        image.lengths[3], shape[0],         sizes[0],
        sizes[1],         sizes[2],         static_cast<float>(settings.numbers[0]),
        sizes[3] != 0,    sizes[4] != 0};
    roi_align(align, image.as<float>(), regions.as<float>(), owners.as<int64_t>(),
              results[0].as<float>(), threads);
    return true;
}

/// Returns the first element of an operand of float32; `absent` if it is left out.
std::optional<float> number_of(const Tensor *given, float absent) {
    if (given == nullptr)
        return absent;
    if (given->type != kFloat32 || given->count() < 1)
        return std::nullopt;
    return *given->as<float>();
}

/// NonMaxSuppression; setting: whether boxes are centres and sides.
bool suppressed(const SizedSettings &settings, Operands operands, Results results,
                const TensorRoom &room, int) {
    const Tensor &boxes = *operands[0], &scores = *operands[1];
    const Tensor *const most = operand(operands, 2), *const least = operand(operands, 4);
    const auto overlap = number_of(operand(operands, 3), 0), bar = number_of(least, 0);
    if (boxes.type != kFloat32 || scores.type != kFloat32 || boxes.rank != 3 || scores.rank != 3 ||
        boxes.lengths[2] != 4 || scores.lengths[0] != boxes.lengths[0] ||
        scores.lengths[2] != boxes.lengths[1] || !overlap || !bar ||
        boxes.lengths[1] > std::numeric_limits<uint32_t>::max() ||
        (most != nullptr && (most->type != kInt64 || most->count() < 1)))
        return false;
    const int64_t count = most == nullptr ? 0 : std::max<int64_t>(*most->as<int64_t>(), 0);
    const Suppression limits{boxes.lengths[0],
                             scores.lengths[1],
                             boxes.lengths[1],
                             settings.integers[0] != 0,
                             count,
                             *overlap,
                             *bar,
                             least != nullptr};
    const auto [rows, held] = room.scratch(limits.rows_max() * 3 * int64_t{sizeof(int64_t)});
    const auto [scratch, also_held] = room.scratch(limits.scratch_bytes());
    auto *const found = reinterpret_cast<int64_t *>(rows);
    const int64_t shape[] = {
        suppress(limits, boxes.as<float>(), scores.as<float>(), found, scratch), 3};
    results[0] = room.make(kInt64, shape);
    std::memcpy(results[0].data, rows, static_cast<size_t>(results[0].size_bytes()));
    return true;
}

constexpr SizedRow kDetectionRows[] = {{"RoiAlign", aligned, 5, 1},
                                       {"NonMaxSuppression", suppressed, 1}};

} // namespace

SizedPointer sized_detection(std::string_view name, const SizedSettings &settings) {
    return sized_of(kDetectionRows, name, settings);
}

} // namespace tightship::kernels
