#ifdef TIGHTSHIP_ONEDNN

#include "describe.hpp"

namespace tightship::onednn {

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

PrimitiveDesc inner_product(std::span<const MemoryDesc *const> descs,
                            const Attributes &attributes) {
    require_operands(descs);
    Library &library = Library::get();
    return make("describe an inner product", Signature("inner_product") << descs << attributes,
                library.inner_product_forward_primitive_desc_create, library.engine, kInference,
                raw(descs[0]), raw(descs[1]), raw(descs[2]), raw(descs[3]), attributes.get());
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
