#include "cpu/this_cpu.hpp"
#include "winograd_task.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kLengthMax = 1 << 24; ///< of an axis of an image
constexpr int64_t kBlock = 16;          ///< channels that are adjacent
constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kRows = 14;            ///< tiles that are multiplied at once
constexpr int64_t kTilesMin = 2 * kRows; ///< tiles at once, unless fewer are asked for
/// Floats of transformed tiles that are kept at once, to stay near the processor.
constexpr int64_t kTransformed = int64_t{3} << 17;

/// Throws std::invalid_argument if loops would divide by zero, or leave their scratch.
void check(const WinogradShape &shape) {
    for (const auto &pair : {shape.source, shape.target})
        counted({pair[0], pair[1]}, 1);
    for (const auto &pair : {shape.source, shape.target})
        require(std::max(pair[0], pair[1]) <= kLengthMax,
                "a kernel convolves images of such a size");
    for (const int64_t pad : shape.pads)
        require(0 <= pad && pad < 3, "a kernel convolves with such pads");
    counted({shape.batch, shape.channels, shape.outputs}, 1);
    require(shape.channels % kBlock == 0 && shape.outputs % kBlock == 0,
            "a kernel convolves such numbers of channels");
    counted({shape.tiles_at_once, shape.depth}, 1);
    require(shape.depth % kBlock == 0, "a kernel transforms weights of such a depth");
    counted({kWinogradPlaces, shape.tiles_at_once, shape.channels, kFloat});
    counted({kWinogradPlaces, shape.depth, kWinogradBlock, kFloat});
    for (const ImageStrides &strides : {shape.source_strides, shape.target_strides})
        counted({std::abs(strides.block), std::max(shape.channels, shape.outputs)});
}

int64_t ceiling(int64_t count, int64_t size) {
    return (count + size - 1) / size;
}

/// Returns the loops of this processor with vectors of at most so many floats.
const WinogradLoops &loops_up_to(int64_t lanes) {
    const WinogradLoops *const oldest = &portable::winograd_loops;
    const WinogradLoops *const older = lanes >= 8 ? &avx2::winograd_loops : oldest;
    const WinogradLoops *const newest = lanes >= 16 ? &avx512::winograd_loops : older;
    return *for_this_cpu(newest, older, oldest);
}

class Winograd : public Kernel {
  public:
    Winograd(const WinogradShape &shape, bool has_bias, bool has_addend)
        : shape_(shape), has_bias_(has_bias), has_addend_(has_addend),
          loops_(loops_up_to(shape.lanes)) {
        tiles_ = counted({shape.batch, ceiling(shape.target[0], kWinogradTile),
                          ceiling(shape.target[1], kWinogradTile)});
        const int64_t fit = kTransformed / (kWinogradPlaces * shape.channels) / kRows * kRows;
        most_ = std::min(std::max(fit, kTilesMin), shape.tiles_at_once);
    }

    int64_t scratch_bytes(int threads) const override {
        const Split split = split_among(threads);
        const int64_t gathered = split.by_chunks ? split.tickets : 1;
        return (gathered * tile_floats(split) + split.tickets * own_floats(split)) * kFloat;
    }

    void run(std::span<char *const> operands, int threads) const override {
        size_t next = 0;
        const auto take = [&](bool present) {
            return present ? reinterpret_cast<float *>(operands[next++]) : nullptr;
        };
        WinogradTask task{};
        task.shape = &shape_;
        task.source = take(true);
        task.weights = take(true);
        task.bias = take(has_bias_);
        task.addend = take(has_addend_);
        task.target = take(true);
        float *scratch = reinterpret_cast<float *>(operands.back());
        const Split split = split_among(threads);
        task.tiles_at_once = split.at_once;
        const int64_t tickets = split.tickets;
        if (split.by_chunks) {
            parallel_for(
                threads, split.chunks, split.chunks / tickets, [&](int64_t begin, int64_t end) {
                    const WinogradScratch own = scratch_of(split, scratch, tickets,
                                                           ticket_of(begin, tickets, split.chunks));
                    for (int64_t chunk = begin; chunk < end; ++chunk) {
                        loops_.gather(task, part(split, chunk), 0, shape_.channels, own.tiles);
                        loops_.compute(task, part(split, chunk), 0, blocks(), own);
                    }
                });
            return;
        }
        const int64_t groups = shape_.channels / kBlock;
        for (int64_t chunk = 0; chunk < split.chunks; ++chunk) {
            const WinogradPart tiles = part(split, chunk);
            parallel_for(threads, groups, groups / std::min<int64_t>(threads, groups),
                         [&](int64_t begin, int64_t end) {
                             loops_.gather(task, tiles, begin * kBlock, end * kBlock, scratch);
                         });
            parallel_for(threads, blocks(), blocks() / tickets, [&](int64_t begin, int64_t end) {
                WinogradScratch own = scratch_of(split, scratch, 1, 0);
                const int64_t before = ticket_of(begin, tickets, blocks()) * own_floats(split);
                own.weights += before;
                own.products += before;
                loops_.compute(task, tiles, begin, end, own);
            });
        }
    }

    std::vector<Reach> reach() const override {
        const Reach target = image(shape_.target, shape_.target_strides, shape_.outputs);
        std::vector<Reach> all{image(shape_.source, shape_.source_strides, shape_.channels),
                               dense(counted({shape_.outputs, 9, shape_.channels}), kFloat)};
        if (has_bias_)
            all.push_back(dense(shape_.outputs, kFloat));
        if (has_addend_)
            all.push_back(target);
        all.push_back(target);
        return all;
    }

  private:
    /// Division of the work: chunks of tiles, and whether threads share out these, rather than the
    /// outputs of each chunk.
    struct Split {
        int64_t at_once, chunks, tickets;
        bool by_chunks;
    };

    int64_t blocks() const { return ceiling(shape_.outputs, kWinogradBlock); }

    /// Divides the work. Threads share out chunks if each is large enough to transform weights for,
    /// or if there are more of them than blocks of outputs.
    Split split_among(int threads) const {
        const int64_t rounds = ceiling(ceiling(tiles_, most_), threads);
        const int64_t even = ceiling(tiles_, rounds * threads);
        const int64_t by_outputs = std::min<int64_t>(threads, blocks());
        if (threads == 1 || even >= kTilesMin ||
            std::min<int64_t>(threads, ceiling(tiles_, kRows)) > by_outputs) {
            const int64_t at_once = std::min(std::max(even, std::min(kRows, tiles_ / 2)), most_);
            const int64_t chunks = ceiling(tiles_, at_once);
            return {at_once, chunks, std::min<int64_t>(threads, chunks), true};
        }
        const int64_t chunks = ceiling(tiles_, most_);
        return {ceiling(tiles_, chunks), chunks, by_outputs, false};
    }

    static int64_t ticket_of(int64_t begin, int64_t tickets, int64_t count) {
        return (begin * tickets + count - 1) / count;
    }

    WinogradPart part(const Split &split, int64_t chunk) const {
        return {chunk * split.at_once, std::min((chunk + 1) * split.at_once, tiles_)};
    }

    int64_t tile_floats(const Split &split) const {
        return kWinogradPlaces * (split.at_once * shape_.channels + kWinogradBetween);
    }

    int64_t weight_floats() const {
        return kWinogradPlaces * (shape_.depth * kWinogradBlock + kWinogradBetween);
    }

    int64_t own_floats(const Split &split) const {
        return weight_floats() +
               kWinogradPlaces * (split.at_once * kWinogradBlock + kWinogradBetween);
    }

    /// Returns a thread's scratch behind the transformed tiles of all threads.
    WinogradScratch scratch_of(const Split &split, float *scratch, int64_t tickets,
                               int64_t ticket) const {
        float *own = scratch + tickets * tile_floats(split) + ticket * own_floats(split);
        return {scratch + ticket * tile_floats(split), own, own + weight_floats()};
    }

    static Reach image(const std::array<int64_t, 2> &size, const ImageStrides &strides,
                       int64_t channels, int64_t batch) {
        const Reach pixels =
            reach_of({batch, size[0], size[1]}, {strides.image, strides.row, strides.pixel}, 1);
        const int64_t last = (channels / kBlock - 1) * strides.block;
        const Reach floats =
            joined(pixels, {std::min<int64_t>(0, last), std::max<int64_t>(0, last) + kBlock}, 1);
        return {floats.low * kFloat, floats.high * kFloat};
    }

    Reach image(const std::array<int64_t, 2> &size, const ImageStrides &strides,
                int64_t channels) const {
        return image(size, strides, channels, shape_.batch);
    }

    WinogradShape shape_;
    bool has_bias_, has_addend_;
    const WinogradLoops &loops_;
    int64_t tiles_, most_; ///< in all, and at most at once
};

} // namespace

std::shared_ptr<const Kernel> winograd(const WinogradShape &shape, bool has_bias, bool has_addend) {
    check(shape);
    auto kernel = std::make_shared<Winograd>(shape, has_bias, has_addend);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
