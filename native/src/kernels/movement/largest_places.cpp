#include "tightship/kernels/movement/largest_places.hpp"

#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tightship::kernels {

namespace {

constexpr int64_t kPiece = 256;         ///< positions of a row that are computed at once
constexpr int64_t kReadGrain = 1 << 14; ///< elements read below which a thread does not pay
constexpr size_t kSpatial = 3;

/// Takes over elements that are larger than the best so far, or the first, and their places.
template <class X>
TIGHTSHIP_INLINE void take_larger(const X *x, int64_t stride, int32_t place, int32_t step, X *best,
                                  int32_t *places, int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index) {
        const X each = x[index * stride];
        const bool is_better = (each > best[index]) | (places[index] < 0);
        best[index] = is_better ? each : best[index];
        places[index] = is_better ? place + static_cast<int32_t>(index) * step : places[index];
    }
}

#define FAMILY(X)                                                                                  \
    TIGHTSHIP_CLONES void take(const X *x, int64_t stride, int32_t place, int32_t step, X *best,   \
                               int32_t *places, int64_t length) {                                  \
        if (stride == 1)                                                                           \
            take_larger(x, 1, place, step, best, places, length);                                  \
        else if (stride == 2)                                                                      \
            take_larger(x, 2, place, step, best, places, length);                                  \
        else                                                                                       \
            take_larger(x, stride, place, step, best, places, length);                             \
    }
FAMILY(float)
FAMILY(double)
#undef FAMILY

/// Puts axes of one pixel before those there are.
Dims filled_up(const Dims &lengths, int64_t value) {
    Dims all(kSpatial - lengths.size(), value);
    all.insert(all.end(), lengths.begin(), lengths.end());
    return all;
}

template <class X> class LargestPlaces : public Kernel {
  public:
    explicit LargestPlaces(Windows windows) : windows_(std::move(windows)) {
        for (Dims *each : {&windows_.image, &windows_.positions, &windows_.kernel,
                           &windows_.strides, &windows_.dilations})
            *each = filled_up(*each, 1);
        windows_.pads = filled_up(windows_.pads, 0);
        windows_.steps = filled_up(windows_.steps, 0);
        const auto product = [](const Dims &lengths) {
            return counted({lengths[0], lengths[1], lengths[2]});
        };
        image_ = product(windows_.image);
        positions_ = product(windows_.positions);
        taps_ = product(windows_.kernel);
    }

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const X *>(operands[0]);
        auto *target = reinterpret_cast<X *>(operands[1]);
        auto *places = reinterpret_cast<int64_t *>(operands[2]);
        const int64_t length = windows_.positions[2],
                      rows = positions_ / std::max<int64_t>(length, 1);
        parallel_for(threads, windows_.images * rows,
                     kReadGrain / std::max<int64_t>(length * taps_, 1),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row)
                             write_row(source + row / rows * image_, row / rows * image_,
                                       row % rows, target + row * length, places + row * length);
                     });
    }

    size_t written() const override { return 2; }

    std::vector<Reach> reach() const override {
        const int64_t found = counted({windows_.images, positions_});
        return {dense(counted({windows_.images, image_}), sizeof(X)), dense(found, sizeof(X)),
                dense(found, sizeof(int64_t))};
    }

  private:
    int64_t at(size_t axis, int64_t position, int64_t tap) const {
        return position * windows_.strides[axis] + tap * windows_.dilations[axis] -
               windows_.pads[axis];
    }

    void write_row(const X *image, int64_t first, int64_t row, X *target, int64_t *places) const {
        const int64_t above = row / windows_.positions[1], beside = row % windows_.positions[1];
        for (int64_t start = 0; start < windows_.positions[2]; start += kPiece) {
            const int64_t length = std::min(kPiece, windows_.positions[2] - start);
            X best[kPiece];
            int32_t found[kPiece];
            std::fill_n(best, length, std::numeric_limits<X>::lowest());
            std::fill_n(found, length, -1);
            for (int64_t deep = 0; deep < windows_.kernel[0]; ++deep)
                for (int64_t high = 0; high < windows_.kernel[1]; ++high) {
                    const int64_t z = at(0, above, deep), y = at(1, beside, high);
                    if (z >= 0 && z < windows_.image[0] && y >= 0 && y < windows_.image[1])
                        take_line(image + (z * windows_.image[1] + y) * windows_.image[2],
                                  z * windows_.steps[0] + y * windows_.steps[1], start, length,
                                  best, found);
                }
            std::copy_n(best, length, target + start);
            for (int64_t index = 0; index < length; ++index)
                places[start + index] = first + found[index];
        }
    }

    /// Applies the taps along the last axis to positions [start, start + length) of a row.
    void take_line(const X *line, int64_t place, int64_t start, int64_t length, X *best,
                   int32_t *found) const {
        const int64_t stride = windows_.strides[2], pixels = windows_.image[2];
        for (int64_t tap = 0; tap < windows_.kernel[2]; ++tap) {
            const int64_t from = at(2, start, tap);
            const int64_t skipped = from < 0 ? (-from + stride - 1) / stride : 0;
            const int64_t last = pixels - 1 - from;
            const int64_t stop = last < 0 ? 0 : std::min(length, last / stride + 1);
            if (skipped >= stop)
                continue;
            const int64_t x = from + skipped * stride;
            take(line + x, stride, static_cast<int32_t>(place + x * windows_.steps[2]),
                 static_cast<int32_t>(stride * windows_.steps[2]), best + skipped, found + skipped,
                 stop - skipped);
        }
    }

    Windows windows_;
    int64_t image_, positions_, taps_;
};

} // namespace

std::shared_ptr<const Kernel> largest_places(ElementType type, Windows windows) {
    const size_t rank = windows.image.size();
    require(rank >= 1 && rank <= kSpatial, "a kernel pools over other axes than one to three");
    for (const Dims *each : {&windows.positions, &windows.kernel, &windows.strides,
                             &windows.dilations, &windows.pads, &windows.steps})
        require(each->size() == rank, "a kernel lacks a number for an axis");
    int64_t image = 1, farthest = 0, positions = windows.images;
    counted({windows.images});
    for (size_t axis = 0; axis < rank; ++axis) {
        image = counted({image, windows.image[axis]}, 1);
        positions = counted({positions, windows.positions[axis]});
        const int64_t step = windows.steps[axis];
        require(step >= 0 && step <= INT32_MAX, "a kernel has an impossible step");
        farthest += counted({windows.image[axis] - 1, step});
        for (const int64_t number :
             {windows.kernel[axis], windows.strides[axis], windows.dilations[axis]})
            require(number >= 1 && number <= INT32_MAX, "a kernel has an impossible window");
        require(windows.pads[axis] >= 0 && windows.pads[axis] <= INT32_MAX,
                "a kernel has an impossible padding");
        require(windows.positions[axis] <= INT32_MAX &&
                    counted({windows.strides[axis], step}) <= INT32_MAX,
                "a kernel has too many positions");
    }
    counted({windows.images, image});
    if (farthest > INT32_MAX || image > INT32_MAX)
        return nullptr;
    switch (type) {
    case ElementType::kFloat32:
        return std::make_shared<LargestPlaces<float>>(std::move(windows));
    case ElementType::kFloat64:
        return std::make_shared<LargestPlaces<double>>(std::move(windows));
    default:
        return nullptr;
    }
}

} // namespace tightship::kernels
