/// Shape, element type and layout of an operand.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/library.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tightship::onednn {

using Dims = std::vector<int64_t>;

/// Owns a `dnnl_memory_desc_t`; a value type.
class MemoryDesc {
  public:
    MemoryDesc() = default; ///< of no operand: `is_null()`
    MemoryDesc(const Dims &dims, dnnl_data_type_t dtype, const Dims &strides);
    /// The layout is left to the primitive.
    static MemoryDesc any(const Dims &dims, dnnl_data_type_t dtype);
    /// A layout by its name, as `format` gives it; throws Error for one that has no name here.
    static MemoryDesc named(const Dims &dims, dnnl_data_type_t dtype, const std::string &format);
    static MemoryDesc adopt(dnnl_memory_desc_t owned);
    static MemoryDesc copy_of(const_dnnl_memory_desc_t other);

    MemoryDesc(const MemoryDesc &other);
    MemoryDesc(MemoryDesc &&other) noexcept : desc_(other.desc_) { other.desc_ = nullptr; }
    MemoryDesc &operator=(MemoryDesc other) noexcept {
        std::swap(desc_, other.desc_);
        return *this;
    }
    ~MemoryDesc();

    bool operator==(const MemoryDesc &other) const;
    size_t hash() const; ///< of shape and type, which equal layouts have in common
    bool is_null() const { return desc_ == nullptr; }
    const_dnnl_memory_desc_t get() const { return desc_; }

    Dims dims() const;
    Dims strides() const; ///< of the outer blocks where the layout is blocked
    dnnl_data_type_t dtype() const;
    int64_t size_bytes() const;
    /// Bytes from the operand's address to behind its last element, padding included.
    int64_t end_bytes() const;
    bool is_plain() const;        ///< strides alone describe it
    int64_t offset_bytes() const; ///< of its first element, where it is a part of another
    Dims blocks() const; ///< elements of each axis that an inner block holds; 1 where plain
    /// oneDNN's way to write a layout: "acdb" is nhwc, "aBcd16b" is nChw16c.
    std::string format() const;
    /// Everything that tells it from another, as text.
    std::string signature() const;

    MemoryDesc reshaped(const Dims &dims) const; ///< throws Error where the layout forbids it
    MemoryDesc permuted(const std::vector<int> &permutation) const;
    MemoryDesc part(const Dims &dims, const Dims &offsets) const;

  private:
    dnnl_memory_desc_t desc_ = nullptr;
};

/// Row-major strides, in elements.
Dims dense_strides(const Dims &dims);

} // namespace tightship::onednn

#endif
