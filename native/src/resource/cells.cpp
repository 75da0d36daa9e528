#include "tightship/resource/cells.hpp"

#include "tightship/os/os.hpp"

#include <thread>

namespace tightship::resource {

Cells::Cells()
    : count_(os::register_thread_barrier() ? kCellCount : 0),
      cells_(std::make_unique<Cell[]>(kCellCount + 1)) {
    for (uint32_t index = count_; index <= kCellCount; ++index)
        cells_[index].is_closed = 1;
}

bool Cells::close(bool all) {
    bool is_any = false;
    for (uint32_t index = 0; index < count_; ++index) {
        Cell &cell = cells_[index];
        if (all || !cell.is_empty()) {
            cell.is_closed.store(1, std::memory_order_relaxed);
            is_any = true;
        }
    }
    if (!is_any)
        return false;
    os::thread_barrier();
    for (uint32_t index = 0; index < count_; ++index)
        while (cells_[index].is_closed.load(std::memory_order_relaxed) != 0 &&
               cells_[index].is_busy.load(std::memory_order_acquire) != 0)
            std::this_thread::yield();
    return true;
}

void Cells::forget() {
    for (uint32_t index = 0; index < count_; ++index) {
        cells_[index].set_depth(0);
        cells_[index].set_bits(0);
    }
}

void Cells::open() {
    for (uint32_t index = 0; index < count_; ++index)
        cells_[index].is_closed.store(0, std::memory_order_release);
}

} // namespace tightship::resource
