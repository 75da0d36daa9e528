#include "tightship/kernels/movement/indexed.hpp"

#include "tightship/kernels/movement/number.hpp"
#include "tightship/kernels/movement/strided_copy.hpp"
#include "tightship/kernels/movement/tuples.hpp"
#include "tightship/kernels/spans.hpp"

namespace tightship::kernels {

namespace {

/// Base of the combinations: copies the data, then puts every update in order.
class Scatter : public Kernel {
  public:
    Scatter(int64_t item_bytes, const Indexing &indexing, const Walk &walk, const Whole &whole)
        : item_bytes_(item_bytes), copy_(item_bytes, whole.shape, whole.source, whole.target),
          tuples_(indexing), nest_(walk.shape, {walk.other, walk.tuples, walk.data}) {
        tuples_.require_checked(walk);
        for (const int64_t length : walk.shape)
            count_ = counted({count_, length});
    }

    void run(std::span<char *const> operands, int threads) const override {
        tuples_.check(operands[1]);
        if (operands[0] != operands[3])
            copy_.run(operands[0], operands[3], threads);
        const bool is_long = nest_.row_steps()[1] == 0 && nest_.row_length() >= kLongRow;
        const int64_t shares = std::clamp<int64_t>(is_long ? count_ / kGrain : 1, 1, threads);
        parallel_for(static_cast<int>(shares), shares, 1, [&](int64_t begin, int64_t end) {
            for (int64_t share = begin; share < end; ++share)
                put_all({share, shares}, operands[2], operands[1], operands[3]);
        });
    }

    std::vector<Reach> reach() const override {
        const Reach put = tuples_.data_reach(nest_.reach(2, item_bytes_), item_bytes_);
        const Reach copied = copy_.target_reach();
        return {copy_.source_reach(),
                tuples_.own_reach(),
                nest_.reach(0, item_bytes_),
                {std::min(put.low, copied.low), std::max(put.high, copied.high)}};
    }

  protected:
    /// Part of every row of elements that a thread puts, so that updates keep their order.
    struct Share {
        int64_t number, count;
    };

    virtual void put_all(Share share, const char *updates, const char *tuples,
                         char *target) const = 0;

    /// Calls `put(update, update step, target, target step, length)` for updates of one tuple.
    template <class Put>
    void for_each_span(Share share, const char *updates, const char *tuples, char *target,
                       const Put &put) const {
        const auto steps = nest_.row_steps();
        const int64_t update_step = steps[0], tuple_step = steps[1], target_step = steps[2];
        tuples_.with_offset([&](const auto &offset_of) {
            nest_.for_each_row(1, [&](const auto &offsets, int64_t length) {
                const char *update = updates + offsets[0], *tuple = tuples + offsets[1];
                char *to = target + offsets[2];
                if (tuple_step == 0) {
                    const int64_t first = length * share.number / share.count;
                    const int64_t last = length * (share.number + 1) / share.count;
                    return put(update + first * update_step, update_step,
                               to + offset_of(tuple) + first * target_step, target_step,
                               last - first);
                }
                for (; length > 0; --length) {
                    put(update, 0, to + offset_of(tuple), 0, 1);
                    update += update_step;
                    tuple += tuple_step;
                    to += target_step;
                }
            });
        });
    }

  private:
    static constexpr int64_t kLongRow = 1 << 9; ///< elements of a row that threads share
    static constexpr int64_t kGrain = 1 << 15;  ///< elements that are worth another thread

    int64_t item_bytes_;
    StridedCopy copy_;
    Tuples tuples_;
    LoopNest<3> nest_;
    int64_t count_ = 1; ///< elements of the updates
};

template <class Item> class Put : public Scatter {
  public:
    using Scatter::Scatter;

  protected:
    void put_all(Share share, const char *updates, const char *tuples,
                 char *target) const override {
        for_each_span(
            share, updates, tuples, target,
            [](const char *from, int64_t from_step, char *to, int64_t to_step, int64_t length) {
                if (length == 1)
                    store(to, load<Item>(from));
                else
                    copy_span<Item>(from, from_step, to, to_step, length);
            });
    }
};

/// Combines the updates of one tuple with what the target has.
using CombineSpan = void (*)(const char *from, int64_t from_step, char *to, int64_t to_step,
                             int64_t length);

template <class Number, Number (*combined)(Number, Number)>
void combine_span(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t length) {
    for (; length > 0; --length, from += from_step, to += to_step)
        store(to, combined(load<Number>(to), load<Number>(from)));
}

/// One class for all numbers: the walk over updates would be compiled for each.
class Combine : public Scatter {
  public:
    Combine(CombineSpan span, int64_t item_bytes, const Indexing &indexing, const Walk &walk,
            const Whole &whole)
        : Scatter(item_bytes, indexing, walk, whole), span_(span) {}

  protected:
    void put_all(Share share, const char *updates, const char *tuples,
                 char *target) const override {
        for_each_span(share, updates, tuples, target, span_);
    }

  private:
    CombineSpan span_;
};

template <class Number> CombineSpan span_of(const std::string &how) {
    if (how == "add")
        return combine_span<Number, sum<Number>>;
    if (how == "mul")
        return combine_span<Number, product<Number>>;
    if (how == "max")
        return combine_span<Number, greater<Number>>;
    return combine_span<Number, lesser<Number>>;
}

} // namespace

std::shared_ptr<const Kernel> scatter(int64_t item_bytes, const std::string &dtype,
                                      const std::string &how, const Indexing &indexing,
                                      const Walk &walk, const Whole &whole) {
    std::shared_ptr<const Kernel> kernel;
    require_item(item_bytes);
    if (how == "none")
        with_item(item_bytes, [&](auto zero) {
            kernel = std::make_shared<Put<decltype(zero)>>(item_bytes, indexing, walk, whole);
        });
    else
        with_number(dtype, [&](auto zero) {
            require(item_bytes == sizeof zero, "a kernel combines elements of another size");
            kernel = std::make_shared<Combine>(span_of<decltype(zero)>(how), item_bytes, indexing,
                                               walk, whole);
        });
    return kernel;
}

} // namespace tightship::kernels
