#include "cpu/this_cpu.hpp"
#include "split_task.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tightship::kernels {

namespace {

#ifdef __x86_64__
/// Returns whether the system saves the unit's registers, which a process must request once.
bool is_permitted() {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

class SplitProduct : public Kernel {
  public:
    SplitProduct(const SplitShape &shape, const SplitEnding &ending)
        : shape_(shape), ending_(ending) {}

    int64_t scratch_bytes(int threads) const override {
        return threads * split_scratch_bytes(shape_.rows, shape_.depth);
    }

    void run(std::span<char *const> operands, int threads) const override {
        size_t next = 0;
        const auto take = [&](bool present) {
            return present ? reinterpret_cast<float *>(operands[next++]) : nullptr;
        };
        SplitTask whole{};
        whole.source = take(true);
        whole.weights = take(true);
        whole.bias = take(ending_.has_bias);
        whole.addend = take(ending_.has_addend);
        whole.target = take(true);
        whole.shape = shape_;
        whole.ending = ending_;
        whole.row_end = shape_.rows;
        whole.column_end = shape_.columns;
        parallel_for(threads, threads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t thread = begin; thread < end; ++thread)
                amx::multiply(part_of(whole, thread, threads, operands.back()));
        });
    }

    std::vector<Reach> reach() const override {
        const auto [rows, depth, columns] = shape_;
        const Reach target = dense(counted({rows, columns}), sizeof(float));
        std::vector<Reach> all{
            dense(counted({rows, depth}), sizeof(float)),
            dense(counted({round_up(columns, kSplitPanel), round_up(depth, kSplitTile)}),
                  sizeof(float))};
        if (ending_.has_bias)
            all.push_back(dense(columns, sizeof(float)));
        if (ending_.has_addend)
            all.push_back(target);
        all.push_back(target);
        return all;
    }

  private:
    /// Returns a thread's rows if there are many, because each thread then splits the same weights;
    /// else its columns.
    SplitTask part_of(SplitTask task, int64_t thread, int64_t threads, char *scratch) const {
        task.scratch = scratch + thread * split_scratch_bytes(shape_.rows, shape_.depth);
        if (shape_.rows >= threads * kSplitRows) {
            task.first_row = begin_of(shape_.rows, 2 * kSplitTile, thread, threads);
            task.row_end = begin_of(shape_.rows, 2 * kSplitTile, thread + 1, threads);
        } else {
            task.first_column = begin_of(shape_.columns, kSplitColumns, thread, threads);
            task.column_end = begin_of(shape_.columns, kSplitColumns, thread + 1, threads);
        }
        return task;
    }

    static int64_t begin_of(int64_t count, int64_t unit, int64_t thread, int64_t threads) {
        const int64_t units = (count + unit - 1) / unit;
        return std::min(count, units * thread / threads * unit);
    }

    SplitShape shape_;
    SplitEnding ending_;
};

} // namespace

bool multiplies_tiles() {
#ifdef __x86_64__
    static const bool found = has_tiles() && is_permitted();
    return found;
#else
    return false;
#endif
}

std::shared_ptr<const Kernel> split_product(const SplitShape &shape, const SplitEnding &ending) {
    require(std::min({shape.rows, shape.depth, shape.columns}) > 0, "a kernel multiplies nothing");
    counted({shape.rows + kSplitRows, shape.columns + kSplitPanel, kItemMax}, 1);
    counted({shape.rows + kSplitRows, shape.depth + kSplitDepth, kItemMax}, 1);
    counted({shape.columns + kSplitPanel, shape.depth + kSplitDepth, kItemMax}, 1);
    require(std::min({shape.rows, shape.depth, shape.columns}) > 0, "a kernel multiplies nothing");
    return std::make_shared<SplitProduct>(shape, ending);
}

} // namespace tightship::kernels
