/// Access to rows of operands as dense blocks of the type that arithmetic uses.
#pragma once

#include "tightship/kernels/convert.hpp"

#include <algorithm>

namespace tightship::kernels {

constexpr int64_t kBlockItems = 512;
constexpr int64_t kBlockBytes = kBlockItems * 8;

/// Memory of a block on the stack.
struct alignas(64) Block {
    char bytes[kBlockBytes];
};

/// Reads rows of elements `step` bytes apart: in place if possible, else through a block.
class BlockReader {
  public:
    BlockReader() = default;
    BlockReader(ElementType stored, ElementType work, int64_t step)
        : stored_(stored), item_bytes_(item_bytes(stored)), work_bytes_(item_bytes(work)),
          step_(step), convert_(stored == work ? nullptr : conversion_to(work)) {}

    bool is_direct() const { return convert_ == nullptr && step_ == item_bytes_; }

    /// Returns elements [first, first + length) of the row at `row`. A repeating element is written
    /// to `block` when `first` is 0; the whole row must then pass the same block.
    const char *read(const char *row, int64_t first, int64_t length, Block &block) const {
        if (is_direct())
            return row + first * item_bytes_;
        if (step_ == 0) {
            if (first == 0)
                repeat(row, length, block);
            return block.bytes;
        }
        const char *from = row + first * step_;
        Block dense;
        if (step_ != item_bytes_) {
            char *to = convert_ ? dense.bytes : block.bytes;
            spread(item_bytes_, from, step_, to, item_bytes_, length);
            from = to;
        }
        if (convert_)
            convert_(stored_, from, block.bytes, length);
        return block.bytes;
    }

  private:
    void repeat(const char *item, int64_t length, Block &block) const {
        Block one;
        if (convert_) {
            convert_(stored_, item, one.bytes, 1);
            item = one.bytes;
        }
        spread(work_bytes_, item, 0, block.bytes, work_bytes_, length);
    }

    ElementType stored_{};
    int64_t item_bytes_ = 0, work_bytes_ = 0, step_ = 0;
    Convert convert_ = nullptr;
};

/// Writes rows of elements `step` bytes apart, directly if they are dense and of the type.
class BlockWriter {
  public:
    BlockWriter() = default;
    BlockWriter(ElementType work, ElementType stored, int64_t step)
        : work_(work), item_bytes_(item_bytes(stored)), step_(step),
          convert_(stored == work ? nullptr : conversion_to(stored)) {}

    bool is_direct() const { return convert_ == nullptr && step_ == item_bytes_; }

    /// Returns the address for the elements from `first` on, to be filled before `write`.
    char *room(char *row, int64_t first, Block &block) const {
        return is_direct() ? row + first * item_bytes_ : block.bytes;
    }

    void write(const char *work, char *row, int64_t first, int64_t length) const {
        if (is_direct())
            return;
        char *to = row + first * step_;
        Block dense;
        if (convert_) {
            char *narrow = step_ == item_bytes_ ? to : dense.bytes;
            convert_(work_, work, narrow, length);
            work = narrow;
        }
        if (step_ != item_bytes_)
            spread(item_bytes_, work, item_bytes_, to, step_, length);
    }

  private:
    ElementType work_{};
    int64_t item_bytes_ = 0, step_ = 0;
    Convert convert_ = nullptr;
};

} // namespace tightship::kernels
