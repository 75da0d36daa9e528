#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"

#include <bit>

namespace tightship::onednn {

namespace {

constexpr dnnl_prop_kind_t kInference = dnnl_forward_inference;

/// Text that is equal for equal arguments only.
class Signature {
  public:
    explicit Signature(const char *kind) : text_(kind) {}
    Signature &operator<<(const MemoryDesc &desc) { return add(desc.signature()); }
    Signature &operator<<(const MemoryDesc *desc) {
        return desc == nullptr ? add("none;") : *this << *desc;
    }
    Signature &operator<<(std::span<const MemoryDesc *const> descs) {
        for (const MemoryDesc *desc : descs)
            *this << desc;
        return add("|");
    }
    Signature &operator<<(const Dims &dims) {
        for (const int64_t length : dims)
            *this << length;
        return add("|");
    }
    Signature &operator<<(float number) { return *this << int64_t{std::bit_cast<int32_t>(number)}; }
    Signature &operator<<(int64_t number) { return add(std::to_string(number) + ","); }
    Signature &operator<<(const Window &window) {
        return *this << window.strides << window.dilations << window.padding_begin
                     << window.padding_end;
    }
    Signature &operator<<(const Attributes &attributes) {
        factors_ = attributes.factors();
        return add(attributes.signature());
    }
    std::string text() const { return text_; }
    const std::vector<std::pair<int, int>> &factors() const { return factors_; }

  private:
    Signature &add(const std::string &part) {
        text_ += part;
        return *this;
    }
    std::string text_;
    std::vector<std::pair<int, int>> factors_;
};

/// Calls a `*_primitive_desc_create` and owns what it made.
template <class Create, class... Arguments>
PrimitiveDesc make(const char *what, const Signature &signature, Create create,
                   Arguments... arguments) {
    dnnl_primitive_desc_t desc = nullptr;
    Library::check(create(&desc, arguments...), what);
    return PrimitiveDesc(desc, signature.text(), signature.factors());
}

/// Throws unless what is true of every call of ours holds.
void require(bool holds, const char *what) {
    if (!holds)
        throw Error(what, dnnl_invalid_arguments);
}

/// Four operands, of which the third may be missing.
void require_operands(std::span<const MemoryDesc *const> descs) {
    require(descs.size() == 4, "describe a product of other than four operands");
    for (const size_t index : {0, 1, 3})
        require(descs[index] != nullptr && !descs[index]->is_null(),
                "describe a product without an operand");
}

void require_present(std::span<const MemoryDesc *const> descs) {
    require(!descs.empty(), "describe a primitive without operands");
    for (const MemoryDesc *desc : descs)
        require(desc != nullptr && !desc->is_null(), "describe a primitive without an operand");
}

/// Numbers for each spatial axis of an image, and all within what kernels count with.
void require_spatial(const Dims &numbers, const MemoryDesc &image, int64_t least) {
    require(numbers.size() + 2 == image.dims().size(), "describe a window of another rank");
    for (const int64_t number : numbers)
        require(least <= number && number <= INT32_MAX, "describe a window of such a size");
}

void require_window(const Window &window, const MemoryDesc &image) {
    require_spatial(window.strides, image, 1);
    require_spatial(window.dilations, image, 0);
    require_spatial(window.padding_begin, image, INT32_MIN);
    require_spatial(window.padding_end, image, INT32_MIN);
}

void require_axis(int axis, const MemoryDesc &desc) {
    require(0 <= axis && axis < static_cast<int>(desc.dims().size()), "take an axis there is not");
}

const_dnnl_memory_desc_t raw(const MemoryDesc *desc) {
    return desc == nullptr ? nullptr : desc->get();
}

std::vector<const_dnnl_memory_desc_t> raw(std::span<const MemoryDesc *const> descs) {
    std::vector<const_dnnl_memory_desc_t> result;
    for (const MemoryDesc *desc : descs)
        result.push_back(raw(desc));
    return result;
}

} // namespace

PrimitiveDesc convolution(std::span<const MemoryDesc *const> descs, const Window &window,
                          bool transposed, const Attributes &attributes) {
    require_operands(descs);
    require_window(window, *descs[0]);
    Library &library = Library::get();
    const auto create = transposed ? library.deconvolution_forward_primitive_desc_create
                                   : library.convolution_forward_primitive_desc_create;
    const auto algorithm = transposed ? dnnl_deconvolution_direct : dnnl_convolution_direct;
    return make("describe a convolution",
                Signature("convolution") << descs << window << int64_t{transposed} << attributes,
                create, library.engine, kInference, algorithm, raw(descs[0]), raw(descs[1]),
                raw(descs[2]), raw(descs[3]), window.strides.data(), window.dilations.data(),
                window.padding_begin.data(), window.padding_end.data(), attributes.get());
}

PrimitiveDesc matmul(std::span<const MemoryDesc *const> descs, const Attributes &attributes) {
    require_operands(descs);
    Library &library = Library::get();
    return make("describe a matmul", Signature("matmul") << descs << attributes,
                library.matmul_primitive_desc_create, library.engine, raw(descs[0]), raw(descs[1]),
                raw(descs[2]), raw(descs[3]), attributes.get());
}

PrimitiveDesc pooling(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                      const Dims &kernel, const Window &window, const Attributes &attributes) {
    require_window(window, src);
    require_spatial(kernel, src, 1);
    Library &library = Library::get();
    return make(
        "describe a pooling",
        Signature("pooling") << int64_t{algorithm} << src << dst << kernel << window << attributes,
        library.pooling_forward_primitive_desc_create, library.engine, kInference, algorithm,
        src.get(), dst.get(), window.strides.data(), kernel.data(), window.dilations.data(),
        window.padding_begin.data(), window.padding_end.data(), attributes.get());
}

PrimitiveDesc eltwise(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                      float alpha, float beta, const Attributes &attributes) {
    Library &library = Library::get();
    return make("describe an elementwise operation",
                Signature("eltwise")
                    << int64_t{algorithm} << src << dst << alpha << beta << attributes,
                library.eltwise_forward_primitive_desc_create, library.engine, kInference,
                algorithm, src.get(), dst.get(), alpha, beta, attributes.get());
}

PrimitiveDesc binary(dnnl_alg_kind_t algorithm, const MemoryDesc &left, const MemoryDesc &right,
                     const MemoryDesc &dst, const Attributes &attributes) {
    Library &library = Library::get();
    return make("describe a binary operation",
                Signature("binary") << int64_t{algorithm} << left << right << dst << attributes,
                library.binary_primitive_desc_create, library.engine, algorithm, left.get(),
                right.get(), dst.get(), attributes.get());
}

PrimitiveDesc softmax(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                      int axis, const Attributes &attributes) {
    require_axis(axis, src);
    Library &library = Library::get();
    return make("describe a softmax",
                Signature("softmax")
                    << int64_t{algorithm} << src << dst << int64_t{axis} << attributes,
                library.softmax_forward_primitive_desc_create, library.engine, kInference,
                algorithm, src.get(), dst.get(), axis, attributes.get());
}

PrimitiveDesc local_response(const MemoryDesc &src, const MemoryDesc &dst, int64_t size,
                             std::span<const float, 3> alpha_beta_k, const Attributes &attributes) {
    Library &library = Library::get();
    return make("describe a local response normalization",
                Signature("lrn") << src << dst << size << alpha_beta_k[0] << alpha_beta_k[1]
                                 << alpha_beta_k[2] << attributes,
                library.lrn_forward_primitive_desc_create, library.engine, kInference,
                dnnl_lrn_across_channels, src.get(), dst.get(), size, alpha_beta_k[0],
                alpha_beta_k[1], alpha_beta_k[2], attributes.get());
}

PrimitiveDesc batch_normalization(const MemoryDesc &src, const MemoryDesc &dst, float epsilon,
                                  bool fuse_relu, const Attributes &attributes) {
    Library &library = Library::get();
    const unsigned flags =
        dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift |
        static_cast<unsigned>(fuse_relu ? dnnl_fuse_norm_relu : dnnl_normalization_flags_none);
    return make("describe a batch normalization",
                Signature("batch_norm") << src << dst << epsilon << int64_t{flags} << attributes,
                library.batch_normalization_forward_primitive_desc_create, library.engine,
                kInference, src.get(), dst.get(), epsilon, flags, attributes.get());
}

PrimitiveDesc layer_normalization(const MemoryDesc &src, const MemoryDesc &dst, float epsilon,
                                  bool with_shift, const Attributes &attributes) {
    Library &library = Library::get();
    const unsigned flags =
        dnnl_use_scale |
        static_cast<unsigned>(with_shift ? dnnl_use_shift : dnnl_normalization_flags_none);
    return make("describe a layer normalization",
                Signature("layer_norm") << src << dst << epsilon << int64_t{flags} << attributes,
                library.layer_normalization_forward_primitive_desc_create, library.engine,
                kInference, src.get(), dst.get(), nullptr, epsilon, flags, attributes.get());
}

PrimitiveDesc concat(std::span<const MemoryDesc *const> sources, const MemoryDesc &dst, int axis,
                     const Attributes &attributes) {
    require_present(sources);
    require_axis(axis, dst);
    Library &library = Library::get();
    return make("describe a concatenation",
                Signature("concat") << sources << dst << int64_t{axis} << attributes,
                library.concat_primitive_desc_create, library.engine, dst.get(),
                static_cast<int>(sources.size()), axis, raw(sources).data(), attributes.get());
}

PrimitiveDesc sum(std::span<const MemoryDesc *const> sources, const MemoryDesc &dst,
                  std::span<const float> scales, const Attributes &attributes) {
    require_present(sources);
    require(scales.size() == sources.size(), "describe a sum with other scales than operands");
    Library &library = Library::get();
    Signature signature("sum");
    for (const float scale : scales)
        signature << scale;
    return make("describe a sum", signature << sources << dst << attributes,
                library.sum_primitive_desc_create, library.engine, dst.get(),
                static_cast<int>(sources.size()), scales.data(), raw(sources).data(),
                attributes.get());
}

PrimitiveDesc reduction(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                        float p, float epsilon, const Attributes &attributes) {
    Library &library = Library::get();
    return make("describe a reduction",
                Signature("reduction")
                    << int64_t{algorithm} << src << dst << p << epsilon << attributes,
                library.reduction_primitive_desc_create, library.engine, algorithm, src.get(),
                dst.get(), p, epsilon, attributes.get());
}

PrimitiveDesc resampling(dnnl_alg_kind_t algorithm, const MemoryDesc &src, const MemoryDesc &dst,
                         const Attributes &attributes) {
    Library &library = Library::get();
    return make("describe a resampling",
                Signature("resampling") << int64_t{algorithm} << src << dst << attributes,
                library.resampling_forward_primitive_desc_create, library.engine, kInference,
                algorithm, nullptr, src.get(), dst.get(), attributes.get());
}

PrimitiveDesc shuffle(const MemoryDesc &src, const MemoryDesc &dst, int axis, int64_t group_size,
                      const Attributes &attributes) {
    require_axis(axis, src);
    require(group_size > 0 && src.dims()[static_cast<size_t>(axis)] % group_size == 0,
            "shuffle groups that do not divide their axis");
    Library &library = Library::get();
    return make("describe a channel shuffle",
                Signature("shuffle") << src << dst << int64_t{axis} << group_size << attributes,
                library.shuffle_forward_primitive_desc_create, library.engine, kInference,
                src.get(), dst.get(), axis, group_size, attributes.get());
}

PrimitiveDesc reorder(const MemoryDesc &src, const MemoryDesc &dst, const Attributes &attributes) {
    Library &library = Library::get();
    return make("describe a reorder", Signature("reorder") << src << dst << attributes,
                library.reorder_primitive_desc_create, src.get(), library.engine, dst.get(),
                library.engine, attributes.get());
}

} // namespace tightship::onednn

#endif
