#include "tightship/kernels/detection/roi_align.hpp"

#include "tightship/cpu/clones.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
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
    const Sample *all = nullptr;
    int64_t each = 0, first = 0, stop = 0; ///< pixels [first, stop) are read
};

constexpr int64_t kSamplesMax = 1 << 16; ///< samples of a cell, which are kept while it is computed
constexpr int64_t kSamplesAtOnce = 1 << 10;
constexpr int64_t kGrain = 1 << 13; ///< samples of cells that are worth another thread

int64_t samples_in_cell(float cell, int64_t given) {
    const float wanted = given > 0 ? static_cast<float>(given) : std::ceil(cell);
    if (!(wanted > 0) || std::isinf(wanted))
        return 0;
    if (wanted > static_cast<float>(kSamplesMax))
        throw std::invalid_argument("a cell of a region has more than 65536 samples along an axis; "
                                    "clip regions to their images");
    return static_cast<int64_t>(wanted);
}

/// Finds the samples of an axis and keeps them in `room`, which has a place for each.
Samples find_samples(float start, float cell, int64_t cells, int64_t each, int64_t length,
                     Sample *room) {
    Samples found{room, each, length, 0};
    for (int64_t index = 0; index < cells * each; ++index) {
        const int64_t before = index / each, inside = index % each;
        Sample &sample = room[index] = {};
        float at = start + static_cast<float>(before) * cell +
                   (static_cast<float>(inside) + 0.5F) * cell / static_cast<float>(each);
        if (!(at >= -1.0F && at <= static_cast<float>(length)))
            continue;
        at = std::max(at, 0.0F);
        sample.low = std::min(static_cast<int64_t>(at), length - 1);
        sample.high = std::min(sample.low + 1, length - 1);
        if (sample.low == length - 1)
            at = static_cast<float>(sample.low);
        sample.high_weight = at - static_cast<float>(sample.low);
        sample.low_weight = 1.0F - sample.high_weight;
        found.first = std::min(found.first, sample.low);
        found.stop = std::max(found.stop, sample.high + 1);
    }
    return found;
}

constexpr int64_t kLanes = 16;

using Vector [[gnu::vector_size(kLanes * sizeof(float)), gnu::aligned(4)]] = float;

/// Writes for each row of cells the sum of its weighed rows of pixels, `stride` elements apart.
/// REQUIRES: length >= kLanes; the last vector of a row may overlap the one before.
TIGHTSHIP_CLONES void sum_rows(const float *pixels, int64_t width, const Samples &down,
                               int64_t rows, int64_t length, int64_t stride, float *lines) {
    const Sample *samples = down.all;
    for (int64_t row = 0; row < rows; ++row, lines += stride, samples += down.each)
        for (int64_t next = 0; next < length; next += kLanes) {
            const int64_t place = std::min(next, length - kLanes);
            Vector sums = {};
            for (int64_t each = 0; each < down.each; ++each) {
                const Sample &sample = samples[each];
                const auto at = [&](int64_t pixel_row) {
                    return *reinterpret_cast<const Vector *>(pixels + pixel_row * width + place);
                };
                sums += at(sample.low) * sample.low_weight + at(sample.high) * sample.high_weight;
            }
            *reinterpret_cast<Vector *>(lines + place) = sums;
        }
}

/// Does the same for rows of any length.
TIGHTSHIP_CLONES void sum_short_rows(const float *pixels, int64_t width, const Samples &down,
                                     int64_t rows, int64_t length, int64_t stride, float *lines) {
    const Sample *samples = down.all;
    for (int64_t row = 0; row < rows; ++row, lines += stride, samples += down.each)
        for (int64_t place = 0; place < length; ++place) {
            float sum = 0;
            for (int64_t each = 0; each < down.each; ++each) {
                const Sample &sample = samples[each];
                sum += pixels[sample.low * width + place] * sample.low_weight +
                       pixels[sample.high * width + place] * sample.high_weight;
            }
            lines[place] = sum;
        }
}

/// Elements of a line of sums: a row of the image, and a zero for samples outside it.
int64_t line_length(const RoiAlign &settings) {
    return settings.width + 1;
}

/// Makes samples count from the first pixel that they read, which leaves vectors enough pixels.
void move_to_line(const RoiAlign &settings, Samples &along, Sample *samples) {
    const int64_t room = std::min(kLanes, settings.width);
    along.first = std::min(along.first, settings.width - room);
    along.stop = std::max(along.stop, along.first + room);
    for (int64_t index = 0; index < settings.columns * along.each; ++index) {
        Sample &sample = samples[index];
        const bool is_outside = sample.low_weight == 0 && sample.high_weight == 0;
        sample.low = is_outside ? settings.width : sample.low - along.first;
        sample.high = is_outside ? settings.width : sample.high - along.first;
    }
}

/// Writes the means of the cells of one channel: rows are summed first, then their columns.
/// REQUIRES: `along` counts in lines, of which there is one for each row of cells.
void write_means(const RoiAlign &settings, const float *image, const Samples &down,
                 const Samples &along, float *lines, float *target) {
    const int64_t length = along.stop - along.first, stride = line_length(settings);
    (length < kLanes ? sum_short_rows : sum_rows)(image + along.first, settings.width, down,
                                                  settings.rows, length, stride, lines);
    const auto count = static_cast<float>(std::max<int64_t>(down.each * along.each, 1));
    for (int64_t row = 0; row < settings.rows; ++row, lines += stride) {
        const Sample *tap = along.all;
        for (int64_t column = 0; column < settings.columns; ++column, ++target) {
            float sum = 0;
            for (int64_t each = 0; each < along.each; ++each, ++tap)
                sum += lines[tap->low] * tap->low_weight + lines[tap->high] * tap->high_weight;
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
                    const Sample &y = down.all[row * down.each + high];
                    const Sample &x = along.all[column * along.each + wide];
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

/// Place of a region in its image, in pixels, and the number of samples of its cells.
struct Place {
    float x, y, cell_width, cell_height;
    int64_t along, down; ///< samples of a cell

    Place(const RoiAlign &settings, const float *region) {
        const float shift = settings.is_half_pixel ? 0.5F : 0.0F;
        x = region[0] * settings.scale - shift;
        y = region[1] * settings.scale - shift;
        float width = region[2] * settings.scale - shift - x;
        float height = region[3] * settings.scale - shift - y;
        if (!settings.is_half_pixel) {
            width = std::max(width, 1.0F);
            height = std::max(height, 1.0F);
        }
        cell_width = width / static_cast<float>(settings.columns);
        cell_height = height / static_cast<float>(settings.rows);
        along = samples_in_cell(cell_width, settings.samples);
        down = samples_in_cell(cell_height, settings.samples);
    }
};

/// Half-open range of regions.
struct Block {
    int64_t first, stop;
};

/// Regions, cut into blocks of few samples. A thread computes a block channel by channel: what the
/// regions read of a channel then comes from a near cache.
struct Blocks {
    std::vector<Block> all;
    int64_t regions = 0, samples = 0; ///< most of a block
    int64_t taps = 0;                 ///< samples of the cells of one channel, of all regions

    /// Throws std::invalid_argument if cells have too many samples.
    Blocks(const RoiAlign &settings, const float *boxes) {
        int64_t together = 0;
        for (int64_t index = 0; index < settings.regions; ++index) {
            const Place place(settings, boxes + 4 * index);
            const int64_t each = place.along * settings.columns + place.down * settings.rows;
            if (all.empty() || together + each > kSamplesAtOnce) {
                all.push_back({index, index});
                together = 0;
            }
            all.back().stop = index + 1;
            together += each;
            samples = std::max(samples, together);
            regions = std::max(regions, index + 1 - all.back().first);
            taps += settings.rows * settings.columns * std::max<int64_t>(place.along, 1) *
                    std::max<int64_t>(place.down, 1);
        }
    }
};

/// Memory of a thread.
struct Room {
    std::vector<Sample> samples;
    std::vector<std::pair<Samples, Samples>> found; ///< down and along, of each region of a block
    std::vector<float> lines;                       ///< of one channel
};

/// Operands of a RoiAlign.
struct Work {
    const RoiAlign &settings;
    const float *images, *boxes;
    const int64_t *owners;
    float *target;

    /// Computes channels of the regions of a block.
    void run(Block block, int64_t first_channel, int64_t last_channel, Room &room) const {
        const RoiAlign &s = settings;
        Sample *free = room.samples.data();
        for (int64_t index = block.first; index < block.stop; ++index) {
            const Place at(s, boxes + 4 * index);
            auto &[down, along] = room.found[static_cast<size_t>(index - block.first)];
            down = find_samples(at.y, at.cell_height, s.rows, at.down, s.height, free);
            free += s.rows * at.down;
            along = find_samples(at.x, at.cell_width, s.columns, at.along, s.width, free);
            if (!s.is_largest)
                move_to_line(s, along, free);
            free += s.columns * at.along;
        }
        for (int64_t channel = first_channel; channel < last_channel; ++channel)
            for (int64_t index = block.first; index < block.stop; ++index) {
                const auto &[down, along] = room.found[static_cast<size_t>(index - block.first)];
                const float *image =
                    images + (owners[index] * s.channels + channel) * s.height * s.width;
                float *to = target + (index * s.channels + channel) * s.rows * s.columns;
                if (s.is_largest)
                    write_largest(s, image, down, along, to);
                else
                    write_means(s, image, down, along, room.lines.data(), to);
            }
    }
};

} // namespace

void roi_align(const RoiAlign &settings, const float *images, const float *regions,
               const int64_t *owners, float *target, int threads) {
    const Blocks blocks(settings, regions);
    const int64_t most = std::min<int64_t>(threads, std::max<int64_t>(settings.channels, 1));
    const int64_t tickets = std::clamp<int64_t>(settings.channels * blocks.taps / kGrain, 1, most);
    const Work work{settings, images, regions, owners, target};
    std::vector<Room> rooms(static_cast<size_t>(tickets));
    for (Room &room : rooms) {
        room.samples.resize(static_cast<size_t>(blocks.samples));
        room.found.resize(static_cast<size_t>(blocks.regions));
        room.lines.resize(static_cast<size_t>(settings.rows * line_length(settings)));
    }
    parallel_for(static_cast<int>(tickets), tickets, 1, [&](int64_t begin, int64_t end) {
        for (int64_t ticket = begin; ticket < end; ++ticket) {
            // Threads share channels, of all blocks, so that blocks of few regions do not matter.
            const int64_t channels = settings.channels;
            const int64_t first = channels * ticket / tickets;
            const int64_t last = channels * (ticket + 1) / tickets;
            for (const Block &block : blocks.all)
                work.run(block, first, last, rooms[static_cast<size_t>(ticket)]);
        }
    });
}

} // namespace tightship::kernels
