#include "cpu/this_cpu.hpp"
#include "planes_task.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kPlaneLengthMax = 1 << 24; ///< of an axis
constexpr int64_t kPlaneGrain = 1 << 15;     ///< multiply-adds that pay for a thread

int64_t plane_quotient(int64_t count, int64_t divisor) {
    return (count + divisor - 1) / divisor;
}

/// Throws std::invalid_argument if numbers would overflow, or loops divide by zero.
void check(const PlaneShape &shape) {
    for (const auto &pair : {shape.source, shape.target, shape.kernel, shape.strides})
        counted({pair[0], pair[1]}, 1);
    for (const auto &pair :
         {shape.source, shape.target, shape.kernel, shape.strides, shape.dilations, shape.pads})
        require(0 <= std::min(pair[0], pair[1]) && std::max(pair[0], pair[1]) <= kPlaneLengthMax,
                "a kernel convolves planes of such a size");
    counted({shape.batch, shape.channels, shape.multiplier}, 1);
    counted({shape.batch, shape.channels, shape.multiplier, shape.target[0], shape.target[1],
             shape.taps()});
    counted({shape.batch, shape.channels, shape.source[0], shape.source[1]});
}

/// Lays out a tile for results; `floats` are all that it takes.
struct SizedTile {
    PlaneTile tile;
    int64_t floats;

    SizedTile(const PlaneShape &shape, int64_t rows, int64_t columns) {
        const auto &[down, across] = shape.strides;
        const int64_t pitch =
            plane_quotient(plane_quotient(shape.reached(1, columns), across), kPlaneLine) *
            kPlaneLine;
        const int64_t same_rows = plane_quotient(shape.reached(0, rows), down);
        tile = {rows,
                columns,
                plane_quotient(shape.target[0], rows),
                plane_quotient(shape.target[1], columns),
                pitch,
                pitch * across,
                same_rows};
        floats = counted({tile.row, same_rows, down});
    }
};

/// Returns the layout of the largest tiles within the limit, of about the same size.
PlaneTile tile_of(const PlaneShape &shape) {
    const auto &[height, width] = shape.target;
    int64_t columns = width;
    const int64_t few = std::min<int64_t>(height, 2 * kPlaneRowsMin);
    while (columns > kPlaneLine && SizedTile(shape, few, columns).floats > kPlaneFloats)
        columns = plane_quotient(plane_quotient(columns, 2), kPlaneLine) * kPlaneLine;
    require(SizedTile(shape, 1, columns).floats <= kPlaneFloats,
            "a kernel's window exceeds the tiles of planes");
    int64_t fitting = 1, past = height + 1; // the most rows that fit are in [fitting, past)
    while (past - fitting > 1) {
        const int64_t middle = fitting + (past - fitting) / 2;
        (SizedTile(shape, middle, columns).floats <= kPlaneFloats ? fitting : past) = middle;
    }
    return SizedTile(shape, plane_quotient(height, plane_quotient(height, fitting)), columns).tile;
}

/// Lists the taps, those together that are below one another and a stride apart.
std::vector<PlaneColumn> columns_of(const PlaneShape &shape, const PlaneTile &tile) {
    std::vector<PlaneColumn> columns;
    const auto &[height, width] = shape.kernel;
    const auto &[down, across] = shape.strides;
    const bool is_joined = shape.dilations[0] == 1 && tile.rows >= kPlaneRowsMin;
    const int64_t step = is_joined ? down : height;
    for (int64_t first = 0; first < (is_joined ? std::min(down, height) : height); ++first) {
        const int64_t taps = plane_quotient(height - first, step);
        const int64_t parts = plane_quotient(taps, kPlaneTaps);
        for (int64_t part = 0; part < parts; ++part) {
            const int64_t begin = taps * part / parts, end = taps * (part + 1) / parts;
            const int64_t row = first + begin * step, y = row * shape.dilations[0];
            for (int64_t column = 0; column < width; ++column) {
                const int64_t x = column * shape.dilations[1];
                columns.push_back({(y % down * tile.same_rows + y / down) * tile.row +
                                       x % across * tile.pitch + x / across,
                                   row * width + column, end - begin});
            }
        }
    }
    return columns;
}

/// Returns whether planes side by side, with weights and results, fit the stack and fill vectors.
bool groups(const PlaneShape &shape) {
    return shape.multiplier == 1 && shape.channels >= kPlaneGroup &&
           counted({shape.source[0], shape.padded_width()}) + shape.taps() +
                   shape.target[0] * shape.target[1] <=
               kPlaneGroupVectors;
}

class PlaneConvolution : public Kernel {
  public:
    explicit PlaneConvolution(const PlaneShape &shape)
        : shape_(shape), tile_(tile_of(shape)), columns_(columns_of(shape, tile_)),
          is_grouped_(groups(shape)),
          loop_(is_grouped_
                    ? for_this_cpu(avx512::convolve_plane_groups, avx2::convolve_plane_groups,
                                   portable::convolve_plane_groups)
                    : for_this_cpu(avx512::convolve_planes, avx2::convolve_planes,
                                   portable::convolve_planes)) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto at = [&](size_t index) { return reinterpret_cast<float *>(operands[index]); };
        const PlaneTask task{
            &shape_, &tile_, columns_.data(), static_cast<int64_t>(columns_.size()),
            at(0),   at(1),  at(2),           at(3)};
        int64_t count = shape_.batch * shape_.channels * tile_.down * tile_.across;
        int64_t work = tile_.rows * tile_.columns * shape_.taps() * shape_.multiplier;
        if (is_grouped_) {
            count = shape_.batch * plane_quotient(shape_.channels, kPlaneGroup);
            work = shape_.target[0] * shape_.target[1] * shape_.taps() * kPlaneGroup;
        }
        parallel_for(threads, count, std::max<int64_t>(kPlaneGrain / work, 1),
                     [&](int64_t begin, int64_t end) { loop_(task, begin, end); });
    }

    size_t written() const override { return 1; }

    std::vector<Reach> reach() const override {
        const int64_t results = shape_.channels * shape_.multiplier;
        const auto floats = [](int64_t count) { return dense(count, sizeof(float)); };
        return {floats(shape_.batch * shape_.channels * shape_.source[0] * shape_.source[1]),
                floats(results * shape_.taps()), floats(results),
                floats(shape_.batch * results * shape_.target[0] * shape_.target[1])};
    }

  private:
    PlaneShape shape_;
    PlaneTile tile_;
    std::vector<PlaneColumn> columns_;
    bool is_grouped_;
    PlaneLoop loop_;
};

} // namespace

std::shared_ptr<const Kernel> plane_convolution(const PlaneShape &shape) {
    check(shape);
    return std::make_shared<PlaneConvolution>(shape);
}

} // namespace tightship::kernels
