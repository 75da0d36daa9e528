#ifdef TIGHTSHIP_ONEDNN

#include "describe.hpp"

namespace tightship::onednn {

namespace {

constexpr dnnl_prop_kind_t kTraining = dnnl_forward_training;

/// Forward primitive whose gradients a backward one computes.
class Forward {
  public:
    template <class Create, class... Arguments> explicit Forward(Create create, Arguments... rest) {
        constexpr auto kWhat = "describe the forward of a gradient";
        Library::require_room(kWhat);
        Library::check(create(&desc_, rest...), kWhat);
    }
    Forward(const Forward &) = delete;
    Forward &operator=(const Forward &) = delete;
    ~Forward() {
        if (desc_ != nullptr)
            Library::get().primitive_desc_destroy(desc_);
    }
    const_dnnl_primitive_desc_t get() const { return desc_; }
    /// Passes ownership to the backward description, which reads it again later.
    PrimitiveDesc kept_by(PrimitiveDesc backward) {
        backward.own_forward(std::exchange(desc_, nullptr));
        return backward;
    }

  private:
    dnnl_primitive_desc_t desc_ = nullptr;
};

/// Describes the forward convolution of a gradient's operands. If an image is bfloat16, both are
/// there, and the weights; a gradient beside them may be float32, which a forward has no kernel
/// for.
Forward forward_convolution(std::span<const MemoryDesc *const> descs, const Window &window) {
    Library &library = Library::get();
    std::vector<MemoryDesc> halves;
    std::vector<const MemoryDesc *> operands(descs.begin(), descs.end());
    if (descs[0]->dtype() == dnnl_bf16 || descs[3]->dtype() == dnnl_bf16) {
        halves.reserve(operands.size());
        for (const size_t index : {0, 1, 3})
            operands[index] =
                &halves.emplace_back(MemoryDesc::any(descs[index]->dims(), dnnl_bf16));
    }
    return Forward(library.convolution_forward_primitive_desc_create, library.engine, kTraining,
                   dnnl_convolution_direct, raw(operands[0]), raw(operands[1]), raw(operands[2]),
                   raw(operands[3]), window.strides.data(), window.dilations.data(),
                   window.padding_begin.data(), window.padding_end.data(), nullptr);
}

} // namespace

PrimitiveDesc convolution_data_gradient(std::span<const MemoryDesc *const> descs,
                                        const Window &window, const Attributes &attributes) {
    require_operands(descs);
    require_window(window, *descs[0]);
    Forward forward = forward_convolution(descs, window);
    Library &library = Library::get();
    return forward.kept_by(
        make("describe a gradient of a convolution's image",
             Signature("convolution_data_gradient") << descs << window << attributes,
             library.convolution_backward_data_primitive_desc_create, library.engine,
             dnnl_convolution_direct, raw(descs[0]), raw(descs[1]), raw(descs[3]),
             window.strides.data(), window.dilations.data(), window.padding_begin.data(),
             window.padding_end.data(), forward.get(), attributes.get()));
}

PrimitiveDesc convolution_weights_gradient(std::span<const MemoryDesc *const> descs,
                                           const Window &window, const Attributes &attributes) {
    require_operands(descs);
    require_window(window, *descs[0]);
    Forward forward = forward_convolution(descs, window);
    Library &library = Library::get();
    return forward.kept_by(
        make("describe a gradient of a convolution's weights",
             Signature("convolution_weights_gradient") << descs << window << attributes,
             library.convolution_backward_weights_primitive_desc_create, library.engine,
             dnnl_convolution_direct, raw(descs[0]), raw(descs[1]), raw(descs[2]), raw(descs[3]),
             window.strides.data(), window.dilations.data(), window.padding_begin.data(),
             window.padding_end.data(), forward.get(), attributes.get()));
}

PrimitiveDesc eltwise_gradient(dnnl_alg_kind_t algorithm, const MemoryDesc &data,
                               const MemoryDesc &diff, float alpha, float beta,
                               const Attributes &attributes) {
    Library &library = Library::get();
    Forward forward(library.eltwise_forward_primitive_desc_create, library.engine, kTraining,
                    algorithm, data.get(), data.get(), alpha, beta, nullptr);
    return forward.kept_by(make("describe a gradient of an elementwise operation",
                                Signature("eltwise_gradient") << int64_t{algorithm} << data << diff
                                                              << alpha << beta << attributes,
                                library.eltwise_backward_primitive_desc_create, library.engine,
                                algorithm, diff.get(), diff.get(), data.get(), alpha, beta,
                                forward.get(), attributes.get()));
}

PrimitiveDesc softmax_gradient(dnnl_alg_kind_t algorithm, const MemoryDesc &dst,
                               const MemoryDesc &diff, int axis, const Attributes &attributes) {
    require_axis(axis, dst);
    Library &library = Library::get();
    Forward forward(library.softmax_forward_primitive_desc_create, library.engine, kTraining,
                    algorithm, dst.get(), dst.get(), axis, nullptr);
    return forward.kept_by(make("describe a gradient of a softmax",
                                Signature("softmax_gradient") << int64_t{algorithm} << dst << diff
                                                              << int64_t{axis} << attributes,
                                library.softmax_backward_primitive_desc_create, library.engine,
                                algorithm, diff.get(), diff.get(), dst.get(), axis, forward.get(),
                                attributes.get()));
}

PrimitiveDesc layer_normalization_gradient(const MemoryDesc &src, const MemoryDesc &diff,
                                           float epsilon, const Attributes &attributes) {
    Library &library = Library::get();
    const unsigned flags = dnnl_use_scale | dnnl_use_shift;
    Forward forward(library.layer_normalization_forward_primitive_desc_create, library.engine,
                    kTraining, src.get(), src.get(), nullptr, epsilon, flags, nullptr);
    return forward.kept_by(
        make("describe a gradient of a layer normalization",
             Signature("layer_normalization_gradient") << src << diff << epsilon << attributes,
             library.layer_normalization_backward_primitive_desc_create, library.engine,
             dnnl_backward, diff.get(), diff.get(), src.get(), nullptr, epsilon, flags,
             forward.get(), attributes.get()));
}

} // namespace tightship::onednn

#endif
