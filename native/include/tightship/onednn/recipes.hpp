/// How layouts and attributes of primitives are written into recipes.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"
#include "tightship/recipe.hpp"

#include <memory>

namespace tightship::recipe {

/// A layout is said by its strides, by one of oneDNN's tags, or as a part of such a one. Any other
/// fails the recipe. What is read describes at most 2^46 bytes, along 12 axes or fewer.
template <> struct Codec<onednn::MemoryDesc> {
    static void encode(Writer &writer, const onednn::MemoryDesc &desc);
    static onednn::MemoryDesc decode(Reader &reader);
};

template <> struct Codec<onednn::Attributes> {
    static void encode(Writer &writer, const onednn::Attributes &attributes);
    static onednn::Attributes decode(Reader &reader);
};

/// Operands that may be missing, which somebody has to own once they are read.
class OwnedOperands {
  public:
    explicit OwnedOperands(std::vector<onednn::MemoryDesc> owned) : owned_(std::move(owned)) {
        for (const onednn::MemoryDesc &desc : owned_)
            pointers_.push_back(desc.is_null() ? nullptr : &desc);
    }
    operator const std::vector<const onednn::MemoryDesc *> &() const { return pointers_; }

  private:
    std::vector<onednn::MemoryDesc> owned_;
    std::vector<const onednn::MemoryDesc *> pointers_;
};

template <> struct Codec<std::vector<const onednn::MemoryDesc *>> {
    static void encode(Writer &writer, const std::vector<const onednn::MemoryDesc *> &operands);
    static OwnedOperands decode(Reader &reader);
};

} // namespace tightship::recipe

#endif
