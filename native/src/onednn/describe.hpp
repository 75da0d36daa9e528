/// Helpers that describe primitives: checks of operands, and signatures.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"

#include <bit>

namespace tightship::onednn {

inline constexpr dnnl_prop_kind_t kInference = dnnl_forward_inference;

/// Builds text that is equal for equal arguments only.
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

/// Calls a `*_primitive_desc_create` and takes ownership of the description.
template <class Create, class... Arguments>
PrimitiveDesc make(const char *what, const Signature &signature, Create create,
                   Arguments... arguments) {
    std::string text = signature.text();
    auto factors = signature.factors();
    Library::require_room(what);
    dnnl_primitive_desc_t desc = nullptr;
    Library::check(create(&desc, arguments...), what);
    return PrimitiveDesc(desc, std::move(text), std::move(factors));
}

/// Throws unless `holds`, which is true in every call of ours.
inline void require(bool holds, const char *what) {
    if (!holds)
        throw Error(what, dnnl_invalid_arguments);
}

/// Checks four operands, of which the third may be missing.
inline void require_operands(std::span<const MemoryDesc *const> descs) {
    require(descs.size() == 4, "describe a product of other than four operands");
    for (const size_t index : {0, 1, 3})
        require(descs[index] != nullptr && !descs[index]->is_null(),
                "describe a product without an operand");
}

inline void require_present(std::span<const MemoryDesc *const> descs) {
    require(!descs.empty(), "describe a primitive without operands");
    for (const MemoryDesc *desc : descs)
        require(desc != nullptr && !desc->is_null(), "describe a primitive without an operand");
}

/// Checks a window: one number per spatial axis, all within the range that kernels count in.
inline void require_spatial(const Dims &numbers, const MemoryDesc &image, int64_t least) {
    require(numbers.size() + 2 == image.dims().size(), "describe a window of another rank");
    for (const int64_t number : numbers)
        require(least <= number && number <= INT32_MAX, "describe a window of such a size");
}

inline void require_window(const Window &window, const MemoryDesc &image) {
    require_spatial(window.strides, image, 1);
    require_spatial(window.dilations, image, 0);
    require_spatial(window.padding_begin, image, INT32_MIN);
    require_spatial(window.padding_end, image, INT32_MIN);
}

inline void require_axis(int axis, const MemoryDesc &desc) {
    require(0 <= axis && axis < static_cast<int>(desc.dims().size()),
            "use an axis that does not exist");
}

inline const_dnnl_memory_desc_t raw(const MemoryDesc *desc) {
    return desc == nullptr ? nullptr : desc->get();
}

inline std::vector<const_dnnl_memory_desc_t> raw(std::span<const MemoryDesc *const> descs) {
    std::vector<const_dnnl_memory_desc_t> result;
    for (const MemoryDesc *desc : descs)
        result.push_back(raw(desc));
    return result;
}

} // namespace tightship::onednn

#endif
