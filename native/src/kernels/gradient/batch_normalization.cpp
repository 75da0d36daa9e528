#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/gradient/training.hpp"
#include "tightship/kernels/reach.hpp"

#include "tightship/parallel.hpp"

#include <cmath>
#include <cstring>

namespace tightship::kernels {

namespace {

constexpr int64_t kTile = 64;    ///< rows whose sums are kept in registers
constexpr int64_t kColumns = 32; ///< channels of these
constexpr int kLanes = 8;
constexpr int kParts = static_cast<int>(kColumns) / kLanes;

using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));

TIGHTSHIP_INLINE void widen(const float *from, Doubles &to) {
    Floats narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    to = __builtin_convertvector(narrow, Doubles);
}

/// Sums x and x (x - mean), or dy and dy (x - mean), over rows of channels.
template <bool IsGradient>
TIGHTSHIP_INLINE void tile_of_columns(const float *dy, const float *x, const float *mean,
                                      double *sums, double *products, int64_t rows, int64_t step) {
    Doubles sum[kParts], product[kParts], centre[kParts] = {};
    for (int part = 0; part < kParts; ++part) {
        std::memcpy(&sum[part], sums + part * kLanes, sizeof(Doubles));
        std::memcpy(&product[part], products + part * kLanes, sizeof(Doubles));
        if (IsGradient)
            widen(mean + part * kLanes, centre[part]);
    }
    for (int64_t row = 0; row < rows; ++row, x += step, dy += IsGradient ? step : 0) {
        for (int part = 0; part < kParts; ++part) {
            Doubles value, weight;
            widen(x + part * kLanes, value);
            if constexpr (IsGradient) {
                widen(dy + part * kLanes, weight);
                sum[part] += weight;
                product[part] += weight * (value - centre[part]);
            } else {
                sum[part] += value;
                product[part] += value * value;
            }
        }
    }
    for (int part = 0; part < kParts; ++part) {
        std::memcpy(sums + part * kLanes, &sum[part], sizeof(Doubles));
        std::memcpy(products + part * kLanes, &product[part], sizeof(Doubles));
    }
}

template <bool IsGradient>
TIGHTSHIP_INLINE void columns(const float *dy, const float *x, const float *mean, double *sums,
                              double *products, int64_t rows, int64_t channels) {
    const int64_t whole = channels / kColumns * kColumns;
    for (int64_t first = 0; first < rows; first += kTile) {
        const int64_t count = std::min(kTile, rows - first), start = first * channels;
        for (int64_t channel = 0; channel < whole; channel += kColumns)
            tile_of_columns<IsGradient>(dy + start + channel, x + start + channel, mean + channel,
                                        sums + channel, products + channel, count, channels);
        for (int64_t row = 0; row < count; ++row)
            for (int64_t channel = whole; channel < channels; ++channel) {
                const int64_t at = start + row * channels + channel;
                const double value = x[at], weight = IsGradient ? dy[at] : x[at];
                sums[channel] += weight;
                products[channel] +=
                    weight * (IsGradient ? value - static_cast<double>(mean[channel]) : value);
            }
    }
}

/// Sums the same over one row of one channel.
template <bool IsGradient>
TIGHTSHIP_INLINE void along(const float *dy, const float *x, float mean, double &sum,
                            double &product, int64_t length) {
    double sums[kColumns] = {}, products[kColumns] = {};
    const double centre = IsGradient ? static_cast<double>(mean) : 0.0;
    int64_t index = 0;
    for (; index + kColumns <= length; index += kColumns)
        for (int64_t lane = 0; lane < kColumns; ++lane) {
            const double value = x[index + lane], weight = IsGradient ? dy[index + lane] : value;
            sums[lane] += weight;
            products[lane] += weight * (value - centre);
        }
    for (int64_t lane = 0; index < length; ++index, ++lane) {
        const double value = x[index], weight = IsGradient ? dy[index] : value;
        sums[lane] += weight;
        products[lane] += weight * (value - centre);
    }
    for (int64_t lane = 0; lane < kColumns; ++lane) {
        sum += sums[lane];
        product += products[lane];
    }
}

TIGHTSHIP_CLONES void moments(const float *x, double *sums, double *squares, int64_t rows,
                              int64_t channels) {
    columns<false>(x, x, x, sums, squares, rows, channels);
}
TIGHTSHIP_CLONES void gradient_moments(const float *dy, const float *x, const float *mean,
                                       double *sums, double *products, int64_t rows,
                                       int64_t channels) {
    columns<true>(dy, x, mean, sums, products, rows, channels);
}
TIGHTSHIP_CLONES void row_moments(const float *x, double &sum, double &square, int64_t length) {
    along<false>(x, x, 0.0F, sum, square, length);
}
TIGHTSHIP_CLONES void row_gradient_moments(const float *dy, const float *x, float mean, double &sum,
                                           double &product, int64_t length) {
    along<true>(dy, x, mean, sum, product, length);
}

/// Computes y = x factor + shift, with an own factor and shift for each element.
TIGHTSHIP_CLONES void scale_columns(const float *x, const float *mean, const float *factor,
                                    const float *shift, float *y, int64_t rows, int64_t channels) {
    for (int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
        TIGHTSHIP_INDEPENDENT
        for (int64_t channel = 0; channel < channels; ++channel)
            y[channel] = (x[channel] - mean[channel]) * factor[channel] + shift[channel];
    }
}
TIGHTSHIP_CLONES void scale_row(const float *x, float mean, float factor, float shift, float *y,
                                int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        y[index] = (x[index] - mean) * factor + shift;
}

/// Computes dx = (dy - average - (x - mean) slope) factor.
TIGHTSHIP_CLONES void gradient_columns(const float *dy, const float *x, const float *mean,
                                       const float *average, const float *slope,
                                       const float *factor, float *dx, int64_t rows,
                                       int64_t channels) {
    for (int64_t row = 0; row < rows; ++row, dy += channels, x += channels, dx += channels) {
        TIGHTSHIP_INDEPENDENT
        for (int64_t c = 0; c < channels; ++c)
            dx[c] = (dy[c] - average[c] - (x[c] - mean[c]) * slope[c]) * factor[c];
    }
}
TIGHTSHIP_CLONES void gradient_row(const float *dy, const float *x, float mean, float average,
                                   float slope, float factor, float *dx, int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        dx[index] = (dy[index] - average - (x[index] - mean) * slope) * factor;
}

/// Base of kernels with two sums for each channel, which threads add up apart and one thread
/// combines.
class Channels : public Kernel {
  public:
    Channels(const ChannelsSpec &spec, double epsilon) : spec_(spec), epsilon_(epsilon) {}

    int64_t scratch_bytes(int threads) const override {
        const int64_t parts = is_last() ? std::max(threads, 1) : 1;
        return spec_.channels * (parts * 2 * static_cast<int64_t>(sizeof(double)) +
                                 3 * static_cast<int64_t>(sizeof(float)));
    }

  protected:
    /// Scratch of the threads: sums, products, and then three numbers for each channel.
    struct Room {
        double *sums;
        double *products;
        float *numbers[3];
        int parts;
    };

    bool is_last() const { return spec_.inner == 1; }
    double count() const { return static_cast<double>(spec_.outer * spec_.inner); }
    int64_t elements() const { return spec_.outer * spec_.channels * spec_.inner; }

    Room room(char *scratch, int threads) const {
        const int parts = is_last() ? std::max(threads, 1) : 1;
        auto *sums = reinterpret_cast<double *>(scratch);
        double *products = sums + parts * spec_.channels;
        auto *numbers = reinterpret_cast<float *>(products + parts * spec_.channels);
        return {sums,
                products,
                {numbers, numbers + spec_.channels, numbers + 2 * spec_.channels},
                parts};
    }

    /// Runs `rows` on a part of the rows for each part, or `row` on each row of each channel, and
    /// leaves the total in the first part.
    template <class Rows, class Row>
    void add_up(const Room &room, int threads, const Rows &rows, const Row &row) const {
        const int64_t channels = spec_.channels;
        std::memset(room.sums, 0, static_cast<size_t>(2 * room.parts * channels) * sizeof(double));
        if (!is_last()) {
            parallel_for(threads, channels, grain(spec_.outer * spec_.inner),
                         [&](int64_t begin, int64_t end) {
                             for (int64_t c = begin; c < end; ++c)
                                 for (int64_t o = 0; o < spec_.outer; ++o)
                                     row((o * channels + c) * spec_.inner, c, room.sums[c],
                                         room.products[c]);
                         });
            return;
        }
        parallel_for(threads, room.parts, 1, [&](int64_t begin, int64_t end) {
            for (int64_t part = begin; part < end; ++part) {
                const int64_t first = spec_.outer * part / room.parts;
                rows(first * channels, spec_.outer * (part + 1) / room.parts - first,
                     room.sums + part * channels, room.products + part * channels);
            }
        });
        for (int64_t part = 1; part < room.parts; ++part)
            for (int64_t c = 0; c < channels; ++c) {
                room.sums[c] += room.sums[part * channels + c];
                room.products[c] += room.products[part * channels + c];
            }
    }

    /// Runs `rows` on rows of channels, or `row` on each row of each channel.
    template <class Rows, class Row>
    void each(int threads, const Rows &rows, const Row &row) const {
        if (is_last())
            return parallel_for(
                threads, spec_.outer, grain(spec_.channels),
                [&](int64_t begin, int64_t end) { rows(begin * spec_.channels, end - begin); });
        parallel_for(threads, spec_.outer * spec_.channels, grain(spec_.inner),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t index = begin; index < end; ++index)
                             row(index * spec_.inner, index % spec_.channels);
                     });
    }

    Reach image() const { return dense(elements(), sizeof(float)); }
    Reach vector() const { return dense(spec_.channels, sizeof(float)); }

    ChannelsSpec spec_;
    double epsilon_;

  private:
    static int64_t grain(int64_t length) {
        return std::max<int64_t>(16384 / std::max<int64_t>(length, 1), 1);
    }
};

template <class T> T *at(std::span<char *const> operands, size_t index) {
    return reinterpret_cast<T *>(operands[index]);
}

class BatchNormalization : public Channels {
  public:
    using Channels::Channels;

    void run(std::span<char *const> operands, int threads) const override {
        const auto *x = at<const float>(operands, 0), *scale = at<const float>(operands, 1),
                   *bias = at<const float>(operands, 2);
        auto *y = at<float>(operands, 3), *mean = at<float>(operands, 4),
             *variance = at<float>(operands, 5);
        const Room have = room(operands[6], threads);
        add_up(
            have, threads,
            [&](int64_t start, int64_t rows, double *sums, double *squares) {
                moments(x + start, sums, squares, rows, spec_.channels);
            },
            [&](int64_t start, int64_t, double &sum, double &square) {
                row_moments(x + start, sum, square, spec_.inner);
            });
        float *factor = have.numbers[0];
        for (int64_t c = 0; c < spec_.channels; ++c) {
            const double middle = have.sums[c] / count();
            const double spread = std::max(have.products[c] / count() - middle * middle, 0.0);
            mean[c] = static_cast<float>(middle);
            variance[c] = static_cast<float>(spread);
            factor[c] =
                static_cast<float>(static_cast<double>(scale[c]) / std::sqrt(spread + epsilon_));
        }
        each(
            threads,
            [&](int64_t start, int64_t rows) {
                scale_columns(x + start, mean, factor, bias, y + start, rows, spec_.channels);
            },
            [&](int64_t start, int64_t c) {
                scale_row(x + start, mean[c], factor[c], bias[c], y + start, spec_.inner);
            });
    }

    size_t written() const override { return 3; }

    std::vector<Reach> reach() const override {
        return {image(), vector(), vector(), image(), vector(), vector()};
    }
};

class BatchNormalizationGradient : public Channels {
  public:
    BatchNormalizationGradient(const ChannelsSpec &spec, double epsilon, bool is_given)
        : Channels(spec, epsilon), is_given_(is_given) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *dy = at<const float>(operands, 0), *x = at<const float>(operands, 1),
                   *scale = at<const float>(operands, 2), *mean = at<const float>(operands, 3),
                   *variance = at<const float>(operands, 4);
        auto *dx = at<float>(operands, 5), *dscale = at<float>(operands, 6),
             *dbias = at<float>(operands, 7);
        const Room have = room(operands[8], threads);
        add_up(
            have, threads,
            [&](int64_t start, int64_t rows, double *sums, double *products) {
                gradient_moments(dy + start, x + start, mean, sums, products, rows, spec_.channels);
            },
            [&](int64_t start, int64_t c, double &sum, double &product) {
                row_gradient_moments(dy + start, x + start, mean[c], sum, product, spec_.inner);
            });
        float *average = have.numbers[0], *slope = have.numbers[1], *factor = have.numbers[2];
        for (int64_t c = 0; c < spec_.channels; ++c) {
            const double inverse = 1 / std::sqrt(static_cast<double>(variance[c]) + epsilon_);
            dscale[c] = static_cast<float>(have.products[c] * inverse);
            dbias[c] = static_cast<float>(have.sums[c]);
            factor[c] = static_cast<float>(static_cast<double>(scale[c]) * inverse);
            average[c] = is_given_ ? 0.0F : static_cast<float>(have.sums[c] / count());
            slope[c] = is_given_
                           ? 0.0F
                           : static_cast<float>(have.products[c] / count() * inverse * inverse);
        }
        each(
            threads,
            [&](int64_t start, int64_t rows) {
                gradient_columns(dy + start, x + start, mean, average, slope, factor, dx + start,
                                 rows, spec_.channels);
            },
            [&](int64_t start, int64_t c) {
                gradient_row(dy + start, x + start, mean[c], average[c], slope[c], factor[c],
                             dx + start, spec_.inner);
            });
    }

    size_t written() const override { return 3; }

    std::vector<Reach> reach() const override {
        return {image(), image(), vector(), vector(), vector(), image(), vector(), vector()};
    }

  private:
    bool is_given_;
};

} // namespace

std::shared_ptr<const Kernel> batch_normalization(const ChannelsSpec &spec, double epsilon) {
    counted({spec.outer, spec.channels, spec.inner, kItemMax}, 1);
    return std::make_shared<BatchNormalization>(spec, epsilon);
}

std::shared_ptr<const Kernel> batch_normalization_gradient(const ChannelsSpec &spec, double epsilon,
                                                           bool is_given) {
    counted({spec.outer, spec.channels, spec.inner, kItemMax}, 1);
    return std::make_shared<BatchNormalizationGradient>(spec, epsilon, is_given);
}

} // namespace tightship::kernels
