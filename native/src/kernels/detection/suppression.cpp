#include "tightship/kernels/detection/suppression.hpp"

#include "tightship/cpu/clones.hpp"

#include <algorithm>
#include <bit>

namespace tightship::kernels {

namespace {

constexpr int64_t kTogether = 16;     ///< boxes that are compared with one at once
constexpr int64_t kSortedAtOnce = 64; ///< candidates that are sorted first

int64_t padded(int64_t count) {
    return (count + kTogether - 1) / kTogether * kTogether;
}

/// Coordinates and areas of boxes, a column each.
struct Columns {
    float *low_x, *low_y, *high_x, *high_y, *area;

    Columns(float *start, int64_t count)
        : low_x(start), low_y(start + count), high_x(start + 2 * count), high_y(start + 3 * count),
          area(start + 4 * count) {}

    void set(int64_t place, const Columns &from, int64_t index) const {
        low_x[place] = from.low_x[index];
        low_y[place] = from.low_y[index];
        high_x[place] = from.high_x[index];
        high_y[place] = from.high_y[index];
        area[place] = from.area[index];
    }
};

TIGHTSHIP_INLINE bool overlaps(const Columns &taken, int64_t count, const Columns &boxes,
                               int64_t index, float most) {
    const float low_x = boxes.low_x[index], low_y = boxes.low_y[index];
    const float high_x = boxes.high_x[index], high_y = boxes.high_y[index];
    const float area = boxes.area[index];
    for (int64_t start = 0; start < count; start += kTogether) {
        int found = 0;
        for (int64_t place = start; place < start + kTogether; ++place) {
            const float left = taken.low_x[place] > low_x ? taken.low_x[place] : low_x;
            const float top = taken.low_y[place] > low_y ? taken.low_y[place] : low_y;
            const float right = taken.high_x[place] < high_x ? taken.high_x[place] : high_x;
            const float bottom = taken.high_y[place] < high_y ? taken.high_y[place] : high_y;
            const float width = right - left, height = bottom - top;
            const float shared = width * height, other = taken.area[place];
            const float whole = area + other - shared;
            found |= (width > 0) & (height > 0) & (shared > 0) & (area > 0) & (other > 0) &
                     (whole > 0) & (shared / whole > most);
        }
        if (found)
            return true;
    }
    return false;
}

TIGHTSHIP_CLONES bool overlaps_any(const Columns &taken, int64_t count, const Columns &boxes,
                                   int64_t index, float most) {
    return overlaps(taken, count, boxes, index, most);
}

void read_boxes(const Suppression &limits, const float *boxes, const Columns &columns) {
    for (int64_t index = 0; index < limits.boxes; ++index, boxes += 4) {
        float first_x = boxes[0], first_y = boxes[1], second_x = boxes[2], second_y = boxes[3];
        if (limits.is_centred) {
            const float half_x = second_x / 2, half_y = second_y / 2;
            second_x = first_x + half_x;
            second_y = first_y + half_y;
            first_x -= half_x;
            first_y -= half_y;
        } else {
            if (first_x > second_x)
                std::swap(first_x, second_x);
            if (first_y > second_y)
                std::swap(first_y, second_y);
        }
        columns.low_x[index] = first_x;
        columns.low_y[index] = first_y;
        columns.high_x[index] = second_x;
        columns.high_y[index] = second_y;
        columns.area[index] = (second_x - first_x) * (second_y - first_y);
    }
}

/// Returns a number that is smaller the better a box is: by its score, then by its index.
uint64_t key_of(float score, int64_t index) {
    const auto bits = std::bit_cast<uint32_t>(score + 0.0F); // no negative zero
    const uint32_t rising = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
    const uint32_t key = score != score ? 0 : rising;
    return uint64_t{~key} << 32 | static_cast<uint64_t>(index);
}

int64_t candidates(const Suppression &limits, const float *scores, uint64_t *keys) {
    int64_t count = 0;
    for (int64_t index = 0; index < limits.boxes; ++index) {
        keys[count] = key_of(scores[index], index);
        count += !limits.has_least || scores[index] > limits.least;
    }
    return count;
}

/// Selects boxes of one class into `taken`; calls `keep(index)` for each.
template <class Keep>
void select_class(const Suppression &limits, const float *scores, const Columns &boxes,
                  const Columns &taken, uint64_t *keys, Keep keep) {
    const int64_t count = candidates(limits, scores, keys), most = limits.class_max();
    int64_t found = 0, next = kSortedAtOnce;
    for (int64_t begin = 0; begin < count && found < most; next *= 4) {
        const int64_t end = std::min(count, begin + next);
        if (end < count)
            std::nth_element(keys + begin, keys + end, keys + count);
        std::sort(keys + begin, keys + end);
        for (; begin < end && found < most; ++begin) {
            const auto index = static_cast<int64_t>(keys[begin] & 0xffffffffU);
            if (overlaps_any(taken, found, boxes, index, limits.overlap))
                continue;
            if (found % kTogether == 0) // boxes without area overlap with nothing
                std::fill_n(taken.area + found, kTogether, 0.0F);
            taken.set(found++, boxes, index);
            keep(index);
        }
    }
}

} // namespace

int64_t Suppression::scratch_bytes() const {
    const int64_t floats = 5 * (padded(boxes) + padded(class_max()));
    return floats * static_cast<int64_t>(sizeof(float)) +
           boxes * static_cast<int64_t>(sizeof(uint64_t));
}

int64_t suppress(const Suppression &limits, const float *boxes, const float *scores, int64_t *rows,
                 char *scratch) {
    auto *keys = reinterpret_cast<uint64_t *>(scratch);
    auto *floats = reinterpret_cast<float *>(keys + limits.boxes);
    const Columns columns(floats, padded(limits.boxes));
    const Columns taken(floats + 5 * padded(limits.boxes), padded(limits.class_max()));
    int64_t *row = rows;
    for (int64_t image = 0; image < limits.images; ++image, boxes += 4 * limits.boxes) {
        read_boxes(limits, boxes, columns);
        for (int64_t each = 0; each < limits.classes; ++each, scores += limits.boxes)
            select_class(limits, scores, columns, taken, keys, [&](int64_t box) {
                row[0] = image;
                row[1] = each;
                row[2] = box;
                row += 3;
            });
    }
    return (row - rows) / 3;
}

} // namespace tightship::kernels
