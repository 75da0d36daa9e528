#include "tightship/kernels/reduction/ranks.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

namespace tightship::kernels {

namespace {

constexpr int64_t kLanes = 32;   ///< elements that are compared with the bar at once
constexpr int64_t kRoomMin = 64; ///< candidates, so that few are dropped at a time
constexpr int64_t kGrain = 1 << 13;

template <class X>
using KeyOf = std::conditional_t<std::is_floating_point_v<X>,
                                 std::conditional_t<sizeof(X) == 4, int32_t, int64_t>, X>;

/// Returns an integer that orders as the elements do: zeros are equal, every NaN is the largest.
template <class X> TIGHTSHIP_INLINE KeyOf<X> key_of(X x, KeyOf<X> flip) {
    using Key = KeyOf<X>;
    if constexpr (std::is_floating_point_v<X>) {
        constexpr int kSign = 8 * sizeof(X) - 1;
        constexpr Key kMost = std::numeric_limits<Key>::max();
        const Key bits = std::bit_cast<Key>(x + X(0));
        const Key ordered = bits ^ ((bits >> kSign) & kMost);
        return (x != x ? kMost : ordered) ^ flip;
    } else {
        return x ^ flip;
    }
}

template <class Key> struct Candidate {
    Key key;
    int64_t index;

    bool operator<(const Candidate &other) const {
        return key > other.key || (key == other.key && index < other.index);
    }
};

/// Returns the first position from `place` on whose block may hold a key above the bar.
template <class X>
TIGHTSHIP_INLINE int64_t skip(const X *x, int64_t place, int64_t length, KeyOf<X> bar,
                              KeyOf<X> flip) {
    for (; place + kLanes <= length; place += kLanes) {
        int found = 0;
        for (int64_t lane = 0; lane < kLanes; ++lane)
            found |= key_of(x[place + lane], flip) > bar;
        if (found)
            break;
    }
    return place;
}

#define FAMILY(X)                                                                                  \
    TIGHTSHIP_CLONES int64_t skip_low(const X *x, int64_t place, int64_t length, KeyOf<X> bar,     \
                                      KeyOf<X> flip) {                                             \
        return skip(x, place, length, bar, flip);                                                  \
    }
FAMILY(float)
FAMILY(double)
FAMILY(int32_t)
FAMILY(int64_t)
#undef FAMILY

/// TopK that collects candidates in a buffer twice as large as the result. When the buffer is full
/// the worse half is dropped, and only elements better than the worst one kept enter from then on.
template <class X> class Best : public Kernel {
    using Key = KeyOf<X>;

  public:
    Best(Line line, int64_t count, bool is_largest)
        : line_(line), count_(count), flip_(is_largest ? Key(0) : Key(-1)),
          room_(std::min(line.along, std::max(2 * count, kRoomMin))) {}

    int64_t scratch_bytes(int threads) const override {
        return parts(threads) * room_ * static_cast<int64_t>(sizeof(Candidate<Key>));
    }

    void run(std::span<char *const> operands, int threads) const override {
        if (count_ == 0)
            return;
        const auto *source = reinterpret_cast<const X *>(operands[0]);
        auto *values = reinterpret_cast<X *>(operands[1]);
        auto *indices = reinterpret_cast<int64_t *>(operands[2]);
        auto *scratch = reinterpret_cast<Candidate<Key> *>(operands[3]);
        const int64_t lines = line_.before * line_.after, count = parts(threads);
        parallel_for(threads, count, 1, [&](int64_t begin, int64_t end) {
            for (int64_t part = begin; part < end; ++part)
                for (int64_t line = lines * part / count; line < lines * (part + 1) / count; ++line)
                    run_line(line, source, values, indices, scratch + part * room_);
        });
    }

    size_t written() const override { return 2; }

    std::vector<Reach> reach() const override {
        const int64_t found = counted({line_.before, count_, line_.after});
        return {dense(counted({line_.before, line_.along, line_.after}), sizeof(X)),
                dense(found, sizeof(X)), dense(found, sizeof(int64_t))};
    }

  private:
    int64_t parts(int threads) const {
        const int64_t lines = line_.before * line_.after;
        const int64_t worth = lines * line_.along / kGrain;
        return std::clamp<int64_t>(std::min(lines, worth), 1, threads);
    }

    void run_line(int64_t line, const X *source, X *values, int64_t *indices,
                  Candidate<Key> *room) const {
        const int64_t before = line / line_.after, column = line % line_.after;
        const X *x = source + before * line_.along * line_.after + column;
        const int64_t found = gather(x, room);
        std::sort(room, room + found);
        const int64_t first = before * count_ * line_.after + column;
        for (int64_t rank = 0; rank < count_; ++rank) {
            const int64_t index = room[rank].index;
            values[first + rank * line_.after] = x[index * line_.after];
            indices[first + rank * line_.after] = index;
        }
    }

    /// Collects candidates and returns how many are left; the best `count_` are among them.
    int64_t gather(const X *x, Candidate<Key> *room) const {
        int64_t place = 0;
        for (; place < room_; ++place)
            room[place] = {key_of(x[place * line_.after], flip_), place};
        int64_t held = room_;
        while (place < line_.along) {
            std::nth_element(room, room + count_ - 1, room + held);
            held = count_;
            const Key bar = room[count_ - 1].key;
            while (held < room_ && place < line_.along) {
                if (line_.after == 1 && place % kLanes == 0)
                    place = skip_low(x, place, line_.along, bar, flip_);
                const int64_t stop = std::min(line_.along, (place / kLanes + 1) * kLanes);
                for (; place < stop && held < room_; ++place) {
                    const Key key = key_of(x[place * line_.after], flip_);
                    room[held] = {key, place};
                    held += key > bar;
                }
            }
        }
        return held;
    }

    Line line_;
    int64_t count_;
    Key flip_;
    int64_t room_;
};

} // namespace

std::shared_ptr<const Kernel> best(ElementType type, Line line, int64_t count, bool is_largest) {
    counted({line.before, line.along, line.after, kItemMax});
    require(0 <= count && count <= line.along, "a kernel looks for more elements than there are");
    switch (type) {
    case ElementType::kFloat32:
        return std::make_shared<Best<float>>(line, count, is_largest);
    case ElementType::kFloat64:
        return std::make_shared<Best<double>>(line, count, is_largest);
    case ElementType::kInt32:
        return std::make_shared<Best<int32_t>>(line, count, is_largest);
    case ElementType::kInt64:
        return std::make_shared<Best<int64_t>>(line, count, is_largest);
    default:
        return nullptr;
    }
}

} // namespace tightship::kernels
