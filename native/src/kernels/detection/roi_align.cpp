#include "tightship/kernels/detection/roi_align.hpp"

#include "tightship/cpu/clones.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace tightship::kernels {

namespace {

/// Two pixels along an axis and their weights, both 0 for a sample outside the image.
struct Sample {
    int64_t low = 0, high = 0;
    float low_weight = 0, high_weight = 0;
};

/// Samples of all cells along one axis of a region, `each` of them in a cell.
struct Samples {
    std::vector<Sample> all;
    int64_t each = 0, first = 0, stop = 0; ///< pixels [first, stop) are read
};

constexpr int64_t kSamplesMax = 1 << 16; ///< samples of a cell, which are kept while it is computed

int64_t samples_in_cell(float cell, int64_t given) {
    const float wanted = given > 0 ? static_cast<float>(given) : std::ceil(cell);
    if (!(wanted > 0) || std::isinf(wanted))
        return 0;
    if (wanted > static_cast<float>(kSamplesMax))
        throw std::invalid_argument("a cell of a region has more than 65536 samples along an axis; "
                                    "clip regions to their images");
    return static_cast<int64_t>(wanted);
}

void find_samples(float start, float cell, int64_t cells, int64_t given, int64_t length,
                  Samples &found) {
    found.each = samples_in_cell(cell, given);
    found.all.assign(static_cast<size_t>(cells * found.each), Sample());
    found.first = length;
    found.stop = 0;
    for (int64_t index = 0; index < cells * found.each; ++index) {
        const int64_t before = index / found.each, inside = index % found.each;
        float at = start + static_cast<float>(before) * cell +
                   (static_cast<float>(inside) + 0.5F) * cell / static_cast<float>(found.each);
        if (!(at >= -1.0F && at <= static_cast<float>(length)))
            continue;
        at = std::max(at, 0.0F);
        Sample &sample = found.all[static_cast<size_t>(index)];
        sample.low = std::min(static_cast<int64_t>(at), length - 1);
        sample.high = std::min(sample.low + 1, length - 1);
        if (sample.low == length - 1)
            at = static_cast<float>(sample.low);
        sample.high_weight = at - static_cast<float>(sample.low);
        sample.low_weight = 1.0F - sample.high_weight;
        found.first = std::min(found.first, sample.low);
        found.stop = std::max(found.stop, sample.high + 1);
    }
}

TIGHTSHIP_CLONES void add_rows(const float *low, float low_weight, const float *high,
                               float high_weight, float *sums, int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        sums[index] += low[index] * low_weight + high[index] * high_weight;
}

/// Writes the means of the cells of one channel: rows are summed first, then their columns.
void write_means(const RoiAlign &settings, const float *image, const Samples &down,
                 const Samples &along, std::vector<float> &line, float *target) {
    const int64_t first = along.first, length = std::max<int64_t>(along.stop - first, 0);
    const auto count = static_cast<float>(std::max<int64_t>(down.each * along.each, 1));
    line.resize(static_cast<size_t>(length));
    const Sample *sample = down.all.data();
    for (int64_t row = 0; row < settings.rows; ++row) {
        std::fill(line.begin(), line.end(), 0.0F);
        for (int64_t each = 0; each < down.each; ++each, ++sample)
            add_rows(image + sample->low * settings.width + first, sample->low_weight,
                     image + sample->high * settings.width + first, sample->high_weight,
                     line.data(), length);
        const Sample *tap = along.all.data();
        for (int64_t column = 0; column < settings.columns; ++column, ++target) {
            float sum = 0;
            for (int64_t each = 0; each < along.each; ++each, ++tap)
                if (tap->low_weight != 0 || tap->high_weight != 0)
                    sum += line[static_cast<size_t>(tap->low - first)] * tap->low_weight +
                           line[static_cast<size_t>(tap->high - first)] * tap->high_weight;
            *target = sum / count;
        }
    }
}

void write_largest(const RoiAlign &settings, const float *image, const Samples &down,
                   const Samples &along, float *target) {
    for (int64_t row = 0; row < settings.rows; ++row)
        for (int64_t column = 0; column < settings.columns; ++column, ++target) {
            bool is_first = true;
            *target = 0;
            for (int64_t high = 0; high < down.each; ++high)
                for (int64_t wide = 0; wide < along.each; ++wide) {
                    const Sample &y = down.all[static_cast<size_t>(row * down.each + high)];
                    const Sample &x = along.all[static_cast<size_t>(column * along.each + wide)];
                    const float *above = image + y.low * settings.width;
                    const float *below = image + y.high * settings.width;
                    const float most = std::max({above[x.low] * (y.low_weight * x.low_weight),
                                                 above[x.high] * (y.low_weight * x.high_weight),
                                                 below[x.low] * (y.high_weight * x.low_weight),
                                                 below[x.high] * (y.high_weight * x.high_weight)});
                    *target = is_first ? most : std::max(*target, most);
                    is_first = false;
                }
        }
}

void write_region(const RoiAlign &settings, const float *image, const float *region,
                  float *target) {
    const float shift = settings.is_half_pixel ? 0.5F : 0.0F;
    const float x = region[0] * settings.scale - shift, y = region[1] * settings.scale - shift;
    float width = region[2] * settings.scale - shift - x;
    float height = region[3] * settings.scale - shift - y;
    if (!settings.is_half_pixel) {
        width = std::max(width, 1.0F);
        height = std::max(height, 1.0F);
    }
    Samples down, along;
    find_samples(y, height / static_cast<float>(settings.rows), settings.rows, settings.samples,
                 settings.height, down);
    find_samples(x, width / static_cast<float>(settings.columns), settings.columns,
                 settings.samples, settings.width, along);
    std::vector<float> line;
    for (int64_t channel = 0; channel < settings.channels; ++channel) {
        if (settings.is_largest)
            write_largest(settings, image, down, along, target);
        else
            write_means(settings, image, down, along, line, target);
        image += settings.height * settings.width;
        target += settings.rows * settings.columns;
    }
}

} // namespace

void roi_align(const RoiAlign &settings, const float *images, const float *regions,
               const int64_t *owners, float *target) {
    const int64_t image = settings.channels * settings.height * settings.width;
    const int64_t result = settings.channels * settings.rows * settings.columns;
    for (int64_t index = 0; index < settings.regions; ++index)
        write_region(settings, images + owners[index] * image, regions + 4 * index,
                     target + index * result);
}

} // namespace tightship::kernels
