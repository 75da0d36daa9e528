/// Scope in which NumPy arrays are values of a run, in memory outside its plan.
#pragma once

#include "resource/numpy_handler.hpp"
#include "tightship/primitive/dynamic.hpp"

#include <memory>

namespace tightship::bind {

/// Scope in which the calling thread's new arrays are values of a run.
class DynamicScope {
  public:
    DynamicScope(std::shared_ptr<primitive::DynamicPools> pools, int64_t limit_bytes);

    void enter() { scope_.enter(); }
    void leave() { scope_.leave(); }
    const std::shared_ptr<primitive::DynamicMemory> &memory() const { return memory_; }

  private:
    std::shared_ptr<primitive::DynamicMemory> memory_;
    NumpyScope scope_;
};

} // namespace tightship::bind
