#include "tightship/kernels/movement/indexed.hpp"

#include "tightship/kernels/movement/tuples.hpp"
#include "tightship/kernels/spans.hpp"

namespace tightship::kernels {

namespace {

class Gather : public Kernel {
  public:
    Gather(int64_t item_bytes, const Indexing &indexing, const Walk &walk)
        : item_bytes_(item_bytes), tuples_(indexing),
          nest_(walk.shape, {walk.data, walk.tuples, walk.other}) {
        require_item(item_bytes);
        tuples_.require_checked(walk);
    }

    void run(std::span<char *const> operands, int threads) const override {
        tuples_.check(operands[1]);
        tuples_.with_offset([&](const auto &offset_of) {
            with_item(item_bytes_, [&](auto zero) {
                using Item = decltype(zero);
                nest_.for_each_row(threads, [&](const auto &offsets, int64_t length) {
                    const char *data = operands[0] + offsets[0];
                    const char *tuple = operands[1] + offsets[1];
                    char *to = operands[2] + offsets[2];
                    take_row<Item>(data, tuple, to, length, offset_of);
                });
            });
        });
    }

    std::vector<Reach> reach() const override {
        return {tuples_.data_reach(nest_.reach(0, item_bytes_), item_bytes_), tuples_.own_reach(),
                nest_.reach(2, item_bytes_)};
    }

  private:
    template <class Item, class OffsetOf>
    void take_row(const char *data, const char *tuple, char *to, int64_t length,
                  const OffsetOf &offset_of) const {
        const auto [data_step, tuple_step, to_step] = nest_.row_steps();
        if (tuple_step == 0)
            return copy_span<Item>(data + offset_of(tuple), data_step, to, to_step, length);
        for (int64_t place = 0; place < length; ++place)
            store(to + place * to_step,
                  load<Item>(data + place * data_step + offset_of(tuple + place * tuple_step)));
    }

    int64_t item_bytes_;
    Tuples tuples_;
    LoopNest<3> nest_;
};

} // namespace

std::shared_ptr<const Kernel> gather(int64_t item_bytes, const Indexing &indexing,
                                     const Walk &walk) {
    return std::make_shared<Gather>(item_bytes, indexing, walk);
}

} // namespace tightship::kernels
