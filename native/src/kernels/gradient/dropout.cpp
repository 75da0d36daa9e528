#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/gradient/training.hpp"
#include "tightship/kernels/reach.hpp"

#include "tightship/parallel.hpp"

#include <algorithm>
#include <cmath>

namespace tightship::kernels {

namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kGroup = 4 * kLanes;
constexpr int64_t kGrain = 64; ///< groups worth a thread
constexpr int kRounds = 10;
constexpr double kNumbers = 4294967296.0; ///< count of different numbers of 32 bits
constexpr int64_t kElementsMax = int64_t{1} << 34;

/// Parameters of a run's random numbers, besides the positions of elements.
struct Draw {
    uint32_t keys[2];
    uint32_t step[2]; ///< low half first
    uint32_t stream;
    uint32_t threshold;
    float scale;
};

/// Draws Philox4x32-10 of counters [first, first + lanes): four numbers for each, all first numbers
/// ahead.
TIGHTSHIP_INLINE void draw(uint32_t first, const Draw &by, uint32_t (&words)[4][kLanes]) {
    uint32_t key0 = by.keys[0], key1 = by.keys[1];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
        words[0][lane] = first + static_cast<uint32_t>(lane);
        words[1][lane] = by.step[1];
        words[2][lane] = by.stream;
        words[3][lane] = by.step[0];
    }
    for (int round = 0; round < kRounds; ++round) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            const uint64_t one = uint64_t{0xD2511F53} * words[0][lane];
            const uint64_t other = uint64_t{0xCD9E8D57} * words[2][lane];
            words[0][lane] = static_cast<uint32_t>(other >> 32) ^ words[1][lane] ^ key0;
            words[1][lane] = static_cast<uint32_t>(other);
            words[2][lane] = static_cast<uint32_t>(one >> 32) ^ words[3][lane] ^ key1;
            words[3][lane] = static_cast<uint32_t>(one);
        }
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
}

/// Drops elements of groups [begin, end), all complete; the target may be the source.
TIGHTSHIP_CLONES void drop(const float *source, float *target, int64_t begin, int64_t end,
                           const Draw &by) {
    for (int64_t group = begin; group < end; ++group) {
        uint32_t words[4][kLanes];
        draw(static_cast<uint32_t>(group * kLanes), by, words);
        const uint32_t *drawn = &words[0][0];
        const float *x = source + group * kGroup;
        float *y = target + group * kGroup;
        TIGHTSHIP_INDEPENDENT
        for (int64_t index = 0; index < kGroup; ++index) {
            const float scaled = x[index] * by.scale;
            y[index] = drawn[index] >= by.threshold ? scaled : 0.0F;
        }
    }
}

/// Marks which of `count` elements, of a group and those behind it, are kept.
TIGHTSHIP_CLONES void mark(unsigned char *mask, int64_t first, int64_t count, const Draw &by) {
    for (int64_t start = 0; start < count; start += kGroup) {
        uint32_t words[4][kLanes];
        draw(static_cast<uint32_t>((first + start / kGroup) * kLanes), by, words);
        const uint32_t *drawn = &words[0][0];
        for (int64_t index = 0; index < std::min(kGroup, count - start); ++index)
            mask[start + index] = drawn[index] >= by.threshold ? 1 : 0;
    }
}

class Dropout : public Kernel {
  public:
    explicit Dropout(const DropoutSpec &spec) : spec_(spec) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const float *>(operands[0]);
        auto *target = reinterpret_cast<float *>(operands[2]);
        const Draw by = draw_by(reinterpret_cast<const int64_t *>(operands[1]));
        const int64_t groups = (spec_.count + kGroup - 1) / kGroup;
        parallel_for(threads, groups, kGrain, [&](int64_t begin, int64_t end) {
            const int64_t whole = std::min(end, spec_.count / kGroup);
            drop(source, target, begin, whole, by);
            if (whole < end)
                drop_rest(source, target, whole, by);
            if (spec_.has_mask)
                mark(reinterpret_cast<unsigned char *>(operands[3]) + begin * kGroup, begin,
                     std::min(end * kGroup, spec_.count) - begin * kGroup, by);
        });
    }

    size_t written() const override { return spec_.has_mask ? 2 : 1; }

    std::vector<Reach> reach() const override {
        const Reach tensor = dense(spec_.count, sizeof(float));
        std::vector<Reach> all{tensor, {0, 2 * sizeof(int64_t)}, tensor};
        if (spec_.has_mask)
            all.push_back(dense(spec_.count, 1));
        return all;
    }

  private:
    Draw draw_by(const int64_t *state) const {
        const auto seed = static_cast<uint64_t>(state[0]), step = static_cast<uint64_t>(state[1]);
        const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
        const double threshold = std::min(std::nearbyint(spec_.ratio * kNumbers), kNumbers - 1);
        return {{low(seed), low(seed >> 32)},
                {low(step), low(step >> 32)},
                static_cast<uint32_t>(spec_.stream),
                static_cast<uint32_t>(threshold),
                static_cast<float>(spec_.scale)};
    }

    /// Drops elements of the last group, which is incomplete.
    void drop_rest(const float *source, float *target, int64_t group, const Draw &by) const {
        const int64_t start = group * kGroup, count = spec_.count - start;
        unsigned char is_kept[kGroup];
        mark(is_kept, group, count, by);
        for (int64_t index = start; index < spec_.count; ++index)
            target[index] = is_kept[index - start] != 0 ? source[index] * by.scale : 0.0F;
    }

    DropoutSpec spec_;
};

} // namespace

std::shared_ptr<const Kernel> dropout(const DropoutSpec &spec) {
    counted({spec.count, kItemMax});
    require(spec.count <= kElementsMax, "a dropout has more elements than it can count");
    require(spec.ratio >= 0 && spec.ratio <= 1, "a dropout drops no share");
    return std::make_shared<Dropout>(spec);
}

} // namespace tightship::kernels
