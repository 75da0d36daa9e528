/// Primitives: chosen and sized when a plan is made (PrimitiveDesc), compiled when it is
/// loaded (Primitive). The caller always provides scratchpads.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/memory_desc.hpp"

#include <array>
#include <memory>
#include <span>
#include <utility>

namespace tightship::onednn {

/// Post-operations, scales and zero points of a primitive; the scratchpad mode is user.
class Attributes {
  public:
    enum class Kind : uint8_t { kSum, kEltwise, kBinary, kScale, kZeroPoint };
    /// Arguments of one call of a method below.
    struct Operation {
        Kind kind;
        std::array<int, 2> numbers; ///< algorithm, or argument and mask
        std::array<float, 2> factors;
        MemoryDesc operand;
    };

    Attributes();
    Attributes(Attributes &&other) noexcept
        : attr_(std::exchange(other.attr_, nullptr)),
          post_ops_(std::exchange(other.post_ops_, nullptr)),
          signature_(std::move(other.signature_)), factors_(std::move(other.factors_)),
          operations_(std::move(other.operations_)) {}
    ~Attributes();
    Attributes(const Attributes &) = delete;
    Attributes &operator=(const Attributes &) = delete;
    Attributes &operator=(Attributes &&) = delete;

    void add_sum(float scale);
    void add_eltwise(dnnl_alg_kind_t algorithm, float alpha, float beta);
    void add_binary(dnnl_alg_kind_t algorithm, const MemoryDesc &operand);
    void scale(int argument, int mask);
    void zero_point(int argument, int mask);

    const_dnnl_primitive_attr_t get() const;
    const std::string &signature() const { return signature_; }
    /// Run arguments that hold scales and zero points, with the mask of each.
    const std::vector<std::pair<int, int>> &factors() const { return factors_; }
    /// Calls so far, if the thread records recipes.
    const std::vector<Operation> &operations() const { return operations_; }

  private:
    explicit Attributes(dnnl_primitive_attr_t attr) : attr_(attr) {}
    void record(Operation operation);

    dnnl_primitive_attr_t attr_ = nullptr;
    dnnl_post_ops_t post_ops_ = nullptr;
    std::string signature_;
    std::vector<std::pair<int, int>> factors_;
    std::vector<Operation> operations_;
};

/// Implementation chosen for fixed shapes and layouts, not compiled yet.
class PrimitiveDesc {
  public:
    PrimitiveDesc(dnnl_primitive_desc_t owned, std::string signature,
                  std::vector<std::pair<int, int>> factors)
        : desc_(owned), signature_(std::move(signature)), factors_(std::move(factors)) {}
    PrimitiveDesc(PrimitiveDesc &&other) noexcept
        : recipe(std::move(other.recipe)), desc_(std::exchange(other.desc_, nullptr)),
          forward_(std::exchange(other.forward_, nullptr)), signature_(std::move(other.signature_)),
          factors_(std::move(other.factors_)), skipped_(other.skipped_) {}
    PrimitiveDesc(const PrimitiveDesc &) = delete;
    PrimitiveDesc &operator=(const PrimitiveDesc &) = delete;
    PrimitiveDesc &operator=(PrimitiveDesc &&) = delete;
    ~PrimitiveDesc();

    /// "brgconv:avx512_core", "jit:avx2", "ref:any", "gemm:jit", ...
    std::string implementation() const;
    int64_t scratchpad_bytes() const;
    /// Layout of the operand of a `DNNL_ARG_*`; null if the primitive has none.
    MemoryDesc operand(int argument) const;
    /// Returns whether its threads wait for each other in busy loops of the library, so that each
    /// must be a thread of the system: sums of weight gradients.
    bool meets() const;
    /// Moves on to the next implementation; returns false if none is left.
    bool next_implementation();
    /// Arguments that a run reads or writes, without the scratchpad, each with the bytes from its
    /// address on that may be touched.
    std::vector<std::pair<int, int64_t>> reach() const;
    /// Number of implementations skipped.
    int skipped() const { return skipped_; }

    const_dnnl_primitive_desc_t get() const { return desc_; }
    /// Takes ownership of the forward description that this backward one refers to.
    void own_forward(dnnl_primitive_desc_t forward) { forward_ = forward; }

    /// Text that is equal for interchangeable primitives, if described for equal thread counts.
    std::string signature() const { return signature_ + implementation(); }

    /// Bytes to make it again from, up to the implementation, if recorded; else empty.
    std::string recipe;

  private:
    dnnl_primitive_desc_t desc_;
    dnnl_primitive_desc_t forward_ = nullptr; ///< read by `next_implementation`
    std::string signature_;
    std::vector<std::pair<int, int>> factors_;
    int skipped_ = 0;
};

/// Position and movement of a window (convolution, pooling); one number per spatial axis.
struct Window {
    Dims strides, dilations, padding_begin, padding_end;
};

/// Describes a convolution; a null bias means none.
PrimitiveDesc convolution(std::span<const MemoryDesc *const> src_weights_bias_dst,
                          const Window &window, bool transposed, const Attributes &attributes);
/// Describes a product of matrices; a null bias means none.
PrimitiveDesc matmul(std::span<const MemoryDesc *const> src_weights_bias_dst,
                     const Attributes &attributes);
/// Describes a product of matrices of which the second is given transposed; a null bias means none.
PrimitiveDesc inner_product(std::span<const MemoryDesc *const> src_weights_bias_dst,
                            const Attributes &attributes);
PrimitiveDesc pooling(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                      const Dims &kernel, const Window &window, const Attributes &attributes);
PrimitiveDesc eltwise(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                      float alpha, float beta, const Attributes &attributes);
PrimitiveDesc binary(dnnl_alg_kind_t algorithm, const MemoryDesc &left, const MemoryDesc &right,
                     const MemoryDesc &dst, const Attributes &attributes);
PrimitiveDesc softmax(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                      int axis, const Attributes &attributes);
PrimitiveDesc local_response(const MemoryDesc &src, const MemoryDesc &dst, int64_t size,
                             std::span<const float, 3> alpha_beta_k, const Attributes &attributes);
PrimitiveDesc batch_normalization(const MemoryDesc &src, const MemoryDesc &dst, float epsilon,
                                  bool fuse_relu, const Attributes &attributes);
PrimitiveDesc layer_normalization(const MemoryDesc &src, const MemoryDesc &dst, float epsilon,
                                  bool with_shift, const Attributes &attributes);
PrimitiveDesc concat(std::span<const MemoryDesc *const> sources, const MemoryDesc &dst, int axis,
                     const Attributes &attributes);
PrimitiveDesc sum(std::span<const MemoryDesc *const> sources, const MemoryDesc &dst,
                  std::span<const float> scales, const Attributes &attributes);
PrimitiveDesc reduction(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                        float p, float epsilon, const Attributes &attributes);
PrimitiveDesc resampling(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                         const Attributes &attributes);
PrimitiveDesc shuffle(const MemoryDesc &src, const MemoryDesc &dst, int axis, int64_t group_size,
                      const Attributes &attributes);
PrimitiveDesc reorder(const MemoryDesc &src, const MemoryDesc &dst, const Attributes &attributes);

/// Describes the gradient of a convolution's source. Operands in the order of the forward one: the
/// source's gradient, weights, null, the destination's gradient.
PrimitiveDesc convolution_data_gradient(std::span<const MemoryDesc *const> src_weights_bias_dst,
                                        const Window &window, const Attributes &attributes);
/// Describes the weights' gradient: the source, then gradients of weights, bias (may be null) and
/// destination.
PrimitiveDesc convolution_weights_gradient(std::span<const MemoryDesc *const> src_weights_bias_dst,
                                           const Window &window, const Attributes &attributes);
/// `data` is the operand that the algorithm reads besides the gradient: the input or the output.
PrimitiveDesc eltwise_gradient(dnnl_alg_kind_t algorithm, const MemoryDesc &data,
                               const MemoryDesc &diff, float alpha, float beta,
                               const Attributes &attributes);
PrimitiveDesc softmax_gradient(dnnl_alg_kind_t algorithm, const MemoryDesc &dst,
                               const MemoryDesc &diff, int axis, const Attributes &attributes);
PrimitiveDesc layer_normalization_gradient(const MemoryDesc &src, const MemoryDesc &diff,
                                           float epsilon, const Attributes &attributes);

/// Compiled primitive; may run in several threads at once.
class Primitive {
  public:
    explicit Primitive(const PrimitiveDesc &desc);
    Primitive(Primitive &&other) noexcept : primitive_(std::exchange(other.primitive_, nullptr)) {}
    Primitive(const Primitive &) = delete;
    Primitive &operator=(const Primitive &) = delete;
    Primitive &operator=(Primitive &&) = delete;
    ~Primitive();
    const_dnnl_primitive_t get() const { return primitive_; }

  private:
    dnnl_primitive_t primitive_ = nullptr;
};

/// Copies operands into other layouts. Generated code is reused for equal layouts and released with
/// the object. For one thread at a time.
class Reorderer {
  public:
    Reorderer() = default;
    Reorderer(const Reorderer &) = delete;
    Reorderer &operator=(const Reorderer &) = delete;

    void run(const MemoryDesc &src, const void *from, const MemoryDesc &dst, void *to);

  private:
    struct Entry {
        MemoryDesc src, dst, scratch;
        Primitive primitive;
    };
    const Entry &entry(const MemoryDesc &src, const MemoryDesc &dst);

    std::vector<Entry> entries_;
};

} // namespace tightship::onednn

#endif
