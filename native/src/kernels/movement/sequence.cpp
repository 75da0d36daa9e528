#include "tightship/kernels/movement/sequence.hpp"

#include "tightship/kernels/movement/narrow_rows.hpp"
#include "tightship/kernels/spans.hpp"

namespace tightship::kernels {

namespace {

constexpr int64_t kGrainBytes = 1 << 16; ///< bytes that pay for a thread
constexpr int64_t kFloat = sizeof(float);

class Reverse : public Kernel {
  public:
    explicit Reverse(const Sequences &given) : s_(given) {}

    void run(std::span<char *const> operands, int threads) const override {
        const char *lengths = operands[1];
        for (int64_t index = 0; index < s_.count; ++index)
            check(load<int64_t>(lengths + 8 * index));
        const int64_t grain = kGrainBytes / std::max<int64_t>(s_.row_bytes, 1);
        parallel_for(threads, s_.count * s_.steps, grain, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                const int64_t index = s_.steps_first ? row % s_.count : row / s_.steps;
                const int64_t step = s_.steps_first ? row / s_.count : row % s_.steps;
                const auto length = load<int64_t>(lengths + 8 * index);
                const int64_t source = step < length ? length - 1 - step : step;
                const int64_t apart = s_.steps_first ? s_.count : 1;
                copy_bytes(operands[0] + (row + (source - step) * apart) * s_.row_bytes,
                           operands[2] + row * s_.row_bytes, s_.row_bytes);
            }
        });
    }

    std::vector<Reach> reach() const override {
        const Reach all = dense(counted({s_.count, s_.steps}), s_.row_bytes);
        return {all, dense(s_.count, sizeof(int64_t)), all};
    }

  private:
    void check(int64_t length) const {
        if (length < 0 || length > s_.steps)
            throw KernelError("Node `" + s_.node + "` reverses " + std::to_string(length) +
                              " steps of a sequence; there must be at least 0 and at most " +
                              std::to_string(s_.steps) + ".");
    }

    Sequences s_;
};

class AppendKernel : public Kernel {
  public:
    explicit AppendKernel(const Append &given)
        : a_(given), cache_bytes_(given.width == 0 ? given.row_bytes
                                                   : given.row_bytes / kFloat / given.width *
                                                         stored_width(given.type, given.width) *
                                                         element_bytes(given.type)) {}

    void run(std::span<char *const> operands, int threads) const override {
        const char *firsts = a_.has_firsts ? operands[2] : nullptr;
        char *target = operands[a_.has_firsts ? 3 : 2];
        for (int64_t batch = 0; batch < a_.batches; ++batch)
            check(first_step(firsts, batch));
        if (operands[0] != target)
            copy_past(operands[0], target, threads);
        const int64_t grain =
            kGrainBytes / std::max<int64_t>(counted({a_.new_steps, a_.row_bytes}), 1);
        parallel_for(threads, a_.batches * a_.groups, grain, [&](int64_t begin, int64_t end) {
            for (int64_t group = begin; group < end; ++group)
                append_to(target + group * a_.steps * cache_bytes_,
                          operands[1] + group / a_.groups * a_.update_strides[0] +
                              group % a_.groups * a_.update_strides[1],
                          first_step(firsts, group / a_.groups) % a_.steps);
        });
    }

    std::vector<Reach> reach() const override {
        const int64_t groups = counted({a_.batches, a_.groups});
        const Reach all = dense(counted({groups, a_.steps}), cache_bytes_);
        const Reach update =
            joined(reach_of({a_.batches, a_.groups, a_.new_steps}, a_.update_strides, 1),
                   {0, a_.row_bytes}, 1);
        if (a_.has_firsts)
            return {all, update, dense(a_.batches, sizeof(int64_t)), all};
        return {all, update, all};
    }

  private:
    /// Writes the update of one group from a step of its cache on.
    void append_to(char *cache, const char *update, int64_t first) const {
        const int64_t step_bytes = a_.update_strides[2];
        const int64_t before_end = std::min(a_.new_steps, a_.steps - first);
        if (step_bytes == a_.row_bytes) {
            write(update, cache + first * cache_bytes_, before_end);
            write(update + before_end * step_bytes, cache, a_.new_steps - before_end);
            return;
        }
        for (int64_t step = 0; step < a_.new_steps; ++step) {
            const int64_t place = step < before_end ? first + step : step - before_end;
            write(update + step * step_bytes, cache + place * cache_bytes_, 1);
        }
    }

    /// Writes adjacent steps.
    void write(const char *update, char *cache, int64_t steps) const {
        if (a_.width == 0)
            return copy_bytes(update, cache, steps * a_.row_bytes);
        narrow_rows(a_.type, a_.width, reinterpret_cast<const float *>(update), cache,
                    steps * a_.row_bytes / kFloat / a_.width);
    }

    static int64_t first_step(const char *firsts, int64_t batch) {
        return firsts == nullptr ? 0 : load<int64_t>(firsts + 8 * batch);
    }

    void check(int64_t first) const {
        const int64_t last = a_.is_circular ? a_.steps - 1 : a_.steps - a_.new_steps;
        if (first < 0 || first > last)
            throw KernelError("Node `" + a_.node + "` writes " + std::to_string(a_.new_steps) +
                              " steps from step " + std::to_string(first) +
                              " on; it must be in [0, " + std::to_string(last) + "].");
    }

    void copy_past(const char *past, char *target, int threads) const {
        const int64_t size_bytes = a_.batches * a_.groups * a_.steps * cache_bytes_;
        parallel_for(threads, size_bytes, kGrainBytes, [&](int64_t begin, int64_t end) {
            copy_bytes(past + begin, target + begin, end - begin);
        });
    }

    Append a_;
    int64_t cache_bytes_; ///< of a step in the cache
};

} // namespace

std::shared_ptr<const Kernel> reverse_sequences(const Sequences &sequences) {
    auto kernel = std::make_shared<Reverse>(sequences);
    kernel->reach();
    return kernel;
}

std::shared_ptr<const Kernel> append(const Append &append) {
    require(append.steps > 0 && append.new_steps <= append.steps,
            "a kernel appends more steps than there is room for");
    require(append.width >= 0 && append.width <= kReachMax / kFloat,
            "a kernel has an impossible length");
    require(append.row_bytes <= kReachMax, "a kernel has an impossible length");
    require(append.width == 0 || append.row_bytes % (append.width * kFloat) == 0,
            "a kernel appends parts of rows");
    for (const int64_t stride : append.update_strides)
        require(append.width == 0 || stride % kFloat == 0, "a kernel reads between elements");
    auto kernel = std::make_shared<AppendKernel>(append);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
