/// Tensors whose shapes only a run knows, and the memory that they are made in.
#pragma once

#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/primitive/dynamic.hpp"

#include <array>
#include <memory>
#include <span>

namespace tightship::kernels {

using Shape = std::span<const int64_t>;

/// Row-major elements. Without `held` their bytes are those of a plan, which later steps overwrite.
struct Tensor {
    static constexpr size_t kRankMax = 8;

    char *data = nullptr; ///< null for a value that there is not (yet)
    ElementType type = ElementType::kFloat32;
    uint8_t rank = 0;
    std::array<int64_t, kRankMax> lengths{};
    std::shared_ptr<const void> held;
    bool is_own = false;   ///< a room made the bytes, so that only tensors have them
    bool is_spare = false; ///< of an operand: the bytes are not needed behind the step that runs

    Shape shape() const { return {lengths.data(), rank}; }
    int64_t item() const { return item_bytes(type); }
    int64_t count() const {
        int64_t product = 1;
        for (const int64_t length : shape())
            product *= length;
        return product;
    }
    int64_t size_bytes() const { return count() * item(); }
    /// Sets the shape; throws std::invalid_argument if it has too many axes or elements.
    void reshape(Shape shape);
    Dims strides() const; ///< in bytes
    template <class T> T *as() const { return reinterpret_cast<T *>(data); }
};

/// Memory of a run outside its plan; the heap unless the run has its own.
class TensorRoom {
  public:
    explicit TensorRoom(std::shared_ptr<primitive::DynamicMemory> memory)
        : memory_(std::move(memory)) {}

    /// Makes a tensor of undefined elements. Throws std::bad_alloc, or as `reshape`.
    Tensor make(ElementType type, Shape shape) const;
    /// Makes a tensor of the type and shape of an operand: of its bytes, if these are spare.
    Tensor make_like(const Tensor &operand) const;
    /// Returns the same elements under another shape: the same bytes, unless a plan has these.
    Tensor reshaped(const Tensor &source, Shape shape) const;
    /// Returns bytes at a boundary of 64 that live as long as what holds them.
    std::pair<char *, std::shared_ptr<const void>> scratch(int64_t size_bytes) const;

  private:
    std::shared_ptr<char> bytes(int64_t size_bytes) const;

    std::shared_ptr<primitive::DynamicMemory> memory_;
};

} // namespace tightship::kernels
