/// Shape, element type and layout of an operand.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/library.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tightship::onednn {

using Dims = std::vector<int64_t>;

/// Owns a `dnnl_memory_desc_t`; a value type. Equal ones share it, since nothing changes one: it
/// takes 656 bytes, and a program has many operands of one description.
class MemoryDesc {
  public:
    MemoryDesc() = default; ///< null, as for an operand that is left out
    MemoryDesc(const Dims &dims, dnnl_data_type_t dtype, const Dims &strides);
    /// Leaves the layout to the primitive.
    static MemoryDesc any(const Dims &dims, dnnl_data_type_t dtype);
    /// Makes a layout from its name, as `format` returns it; throws Error for an unknown name.
    static MemoryDesc named(const Dims &dims, dnnl_data_type_t dtype, const std::string &format);
    static MemoryDesc adopt(dnnl_memory_desc_t owned);
    static MemoryDesc copy_of(const_dnnl_memory_desc_t other);

    bool operator==(const MemoryDesc &other) const;
    size_t hash() const; ///< of shape and type only, which equal layouts share
    bool is_null() const { return desc_ == nullptr; }
    const_dnnl_memory_desc_t get() const { return desc_.get(); }
    const std::shared_ptr<const dnnl_memory_desc> &shared() const { return desc_; }

    Dims dims() const;
    Dims strides() const; ///< in elements; of the outer blocks of a blocked layout
    dnnl_data_type_t dtype() const;
    int64_t size_bytes() const;
    /// Bytes from the operand's address to the end of its last element, padding included.
    int64_t end_bytes() const;
    bool is_plain() const;        ///< whether strides alone describe it
    int64_t offset_bytes() const; ///< of its first element, if it is a part of another layout
    Dims blocks() const;          ///< elements of each axis in an inner block; 1 if not blocked
    /// oneDNN's name of the layout: "acdb" is nhwc, "aBcd16b" is nChw16c.
    std::string format() const;
    /// Text that differs for different layouts.
    std::string signature() const;

    MemoryDesc reshaped(const Dims &dims) const; ///< throws Error if the layout forbids it
    MemoryDesc permuted(const std::vector<int> &permutation) const;
    MemoryDesc part(const Dims &dims, const Dims &offsets) const;

  private:
    std::shared_ptr<const dnnl_memory_desc> desc_;
};

/// Computes row-major strides, in elements.
Dims dense_strides(const Dims &dims);

} // namespace tightship::onednn

#endif
