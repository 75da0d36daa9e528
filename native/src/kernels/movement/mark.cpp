#include "tightship/kernels/movement/generate.hpp"

#include "tightship/kernels/movement/number.hpp"
#include "tightship/kernels/spans.hpp"

namespace tightship::kernels {

namespace {

Dims row_major(const Dims &shape, int64_t item_bytes) {
    Dims strides(shape.size());
    for (size_t axis = shape.size(); axis-- > 0; item_bytes *= shape[axis])
        strides[axis] = item_bytes;
    return strides;
}

Dims without_columns(Dims axes) {
    axes.pop_back();
    return axes;
}

class Triangle : public Kernel {
  public:
    Triangle(int64_t item_bytes, bool upper, bool has_diagonal, const Dims &shape,
             const Dims &source, const Dims &target, const Dims &rows)
        : item_bytes_(item_bytes), columns_(shape.back()), column_step_(source.back()),
          source_reach_(reach_of(shape, source, item_bytes)),
          target_reach_(reach_of(shape, target, item_bytes)), upper_(upper),
          has_diagonal_(has_diagonal),
          nest_(without_columns(shape), {without_columns(source), without_columns(target), rows}) {}

    void run(std::span<char *const> operands, int threads) const override {
        const int64_t shift = has_diagonal_ ? load<int64_t>(operands[1]) : 0;
        char *target = operands[has_diagonal_ ? 2 : 1];
        with_item(item_bytes_, [&](auto zero) {
            using Item = decltype(zero);
            nest_.for_each_row(
                threads,
                [&](const auto &offsets, int64_t length) {
                    const auto [from_step, to_step, row_step] = nest_.row_steps();
                    for (int64_t index = 0; index < length; ++index)
                        write_row<Item>(operands[0] + offsets[0] + index * from_step,
                                        target + offsets[1] + index * to_step,
                                        offsets[2] + index * row_step, shift);
                },
                std::max<int64_t>(columns_, 1));
        });
    }

    std::vector<Reach> reach() const override {
        if (has_diagonal_)
            return {source_reach_, {0, sizeof(int64_t)}, target_reach_};
        return {source_reach_, target_reach_};
    }

  private:
    template <class Item>
    void write_row(const char *from, char *to, int64_t row, int64_t shift) const {
        constexpr int64_t item = sizeof(Item);
        const int64_t first = row + (upper_ ? 0 : 1);
        const int64_t edge = shift >= columns_ - first ? columns_
                             : shift <= -first         ? 0
                                                       : first + shift;
        const int64_t kept = upper_ ? edge : 0;
        const int64_t count = upper_ ? columns_ - edge : edge;
        if (from != to)
            copy_span<Item>(from + kept * column_step_, column_step_, to + kept * item, item,
                            count);
        fill_span(Item{}, to + (upper_ ? 0 : edge) * item, columns_ - count);
    }

    int64_t item_bytes_, columns_, column_step_;
    Reach source_reach_, target_reach_;
    bool upper_, has_diagonal_;
    LoopNest<3> nest_; ///< source, target, and the row of its matrix in place of bytes
};

template <class Index> class OneHot : public Kernel {
  public:
    OneHot(int64_t item_bytes, const std::array<int64_t, 3> &shape)
        : item_bytes_(item_bytes), shape_(shape) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto [outer, depth, inner] = shape_;
        with_item(item_bytes_, [&](auto zero) {
            using Item = decltype(zero);
            constexpr int64_t item = sizeof(Item);
            const Item off = load<Item>(operands[1]), on = load<Item>(operands[1] + item);
            const int64_t size = depth * inner;
            const int64_t grain = (int64_t{1} << 14) / std::max<int64_t>(size, 1);
            parallel_for(threads, outer, grain, [&](int64_t begin, int64_t end) {
                fill_span(off, operands[2] + begin * size * item, (end - begin) * size);
                for (int64_t place = begin * inner; place < end * inner; ++place) {
                    const int64_t mark = position(operands[0], place);
                    if (mark >= 0 && mark < depth)
                        store(operands[2] +
                                  item * (place / inner * size + mark * inner + place % inner),
                              on);
                }
            });
        });
    }

    std::vector<Reach> reach() const override {
        const auto [outer, depth, inner] = shape_;
        return {dense(counted({outer, inner}), sizeof(Index)),
                {0, 2 * item_bytes_},
                dense(counted({outer, depth, inner}), item_bytes_)};
    }

  private:
    int64_t position(const char *indices, int64_t place) const {
        const Index index = load<Index>(indices + place * static_cast<int64_t>(sizeof(Index)));
        const auto depth = static_cast<double>(shape_[1]);
        if (!(static_cast<double>(index) > -depth - 1 && static_cast<double>(index) < depth))
            return -1;
        const auto whole = static_cast<int64_t>(index);
        return whole < 0 ? whole + shape_[1] : whole;
    }

    int64_t item_bytes_;
    std::array<int64_t, 3> shape_;
};

} // namespace

std::shared_ptr<const Kernel> triangle(int64_t item_bytes, bool upper, bool has_diagonal,
                                       const Dims &shape, const Dims &source_strides) {
    require_item(item_bytes);
    require(shape.size() > 1 && shape.size() == source_strides.size(),
            "a kernel has no matrices to take triangles of");
    int64_t count = item_bytes;
    for (const int64_t length : shape)
        count = counted({count, length});
    Dims rows(shape.size() - 1, 0);
    rows.back() = 1;
    return std::make_shared<Triangle>(item_bytes, upper, has_diagonal, shape, source_strides,
                                      row_major(shape, item_bytes), rows);
}

std::shared_ptr<const Kernel> one_hot(int64_t item_bytes, const std::string &dtype,
                                      const std::array<int64_t, 3> &shape) {
    require_item(item_bytes);
    counted({shape[0], shape[1], shape[2], kItemMax});
    std::shared_ptr<const Kernel> kernel;
    with_number(dtype, [&](auto zero) {
        kernel = std::make_shared<OneHot<decltype(zero)>>(item_bytes, shape);
    });
    return kernel;
}

} // namespace tightship::kernels
