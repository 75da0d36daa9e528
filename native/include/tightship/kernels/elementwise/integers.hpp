/// Tables over the integer types.
#pragma once

#include "tightship/kernels/elementwise/elementwise.hpp"

#include <type_traits>

namespace tightship::kernels {

/// Type for an integer's arithmetic without overflow: modulo two to the number of its bits.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

/// Returns `Family<T>::apply` for an integer type; null for other types.
template <template <class> class Family> constexpr Operation::Apply for_integer(ElementType type) {
    switch (type) {
    case ElementType::kInt8:
        return Family<int8_t>::apply;
    case ElementType::kInt16:
        return Family<int16_t>::apply;
    case ElementType::kInt32:
        return Family<int32_t>::apply;
    case ElementType::kInt64:
        return Family<int64_t>::apply;
    case ElementType::kUint8:
        return Family<uint8_t>::apply;
    case ElementType::kUint16:
        return Family<uint16_t>::apply;
    case ElementType::kUint32:
        return Family<uint32_t>::apply;
    case ElementType::kUint64:
        return Family<uint64_t>::apply;
    default:
        return nullptr;
    }
}

} // namespace tightship::kernels
