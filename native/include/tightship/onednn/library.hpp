/// oneDNN opened at run time: headers give the types, `dlsym` the functions, so the package
/// works with any libdnnl.so.3 from 3.2 on, and loads without one.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include <array>
#include <new>
#include <oneapi/dnnl/dnnl.h>
#include <stdexcept>
#include <string>

namespace tightship::onednn {

/// The library is missing, lacks a symbol, or has an unsupported version.
struct LibraryError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// oneDNN refused a call with `status`.
struct Error : std::runtime_error {
    Error(const std::string &what, dnnl_status_t status_code)
        : std::runtime_error(what), status(status_code) {}
    dnnl_status_t status;
};

/// Refusal of memory that the library needed for a call; the call itself may be valid.
class OutOfMemory : public std::bad_alloc {
  public:
    explicit OutOfMemory(const char *wanted);
    const char *what() const noexcept override { return text_.data(); }

  private:
    std::array<char, 128> text_; ///< not a string, which would allocate
};

#define TIGHTSHIP_ONEDNN_FUNCTIONS(X)                                                              \
    X(version)                                                                                     \
    X(engine_create)                                                                               \
    X(engine_destroy)                                                                              \
    X(stream_create)                                                                               \
    X(stream_destroy)                                                                              \
    X(stream_wait)                                                                                 \
    X(get_effective_cpu_isa)                                                                       \
    X(memory_desc_create_with_strides)                                                             \
    X(memory_desc_create_with_tag)                                                                 \
    X(memory_desc_create_submemory)                                                                \
    X(memory_desc_reshape)                                                                         \
    X(memory_desc_permute_axes)                                                                    \
    X(memory_desc_clone)                                                                           \
    X(memory_desc_destroy)                                                                         \
    X(memory_desc_query)                                                                           \
    X(memory_desc_equal)                                                                           \
    X(memory_desc_get_size)                                                                        \
    X(data_type_size)                                                                              \
    X(memory_create)                                                                               \
    X(memory_destroy)                                                                              \
    X(memory_set_data_handle)                                                                      \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_destroy)                                                                      \
    X(primitive_attr_set_scratchpad_mode)                                                          \
    X(primitive_attr_set_post_ops)                                                                 \
    X(primitive_attr_set_scales_mask)                                                              \
    X(primitive_attr_set_zero_points_mask)                                                         \
    X(primitive_attr_get_post_ops)                                                                 \
    X(post_ops_len)                                                                                \
    X(post_ops_get_kind)                                                                           \
    X(primitive_desc_get_attr)                                                                     \
    X(post_ops_create)                                                                             \
    X(post_ops_destroy)                                                                            \
    X(post_ops_append_sum)                                                                         \
    X(post_ops_append_eltwise)                                                                     \
    X(post_ops_append_binary)                                                                      \
    X(primitive_desc_destroy)                                                                      \
    X(primitive_desc_next_impl)                                                                    \
    X(primitive_desc_query)                                                                        \
    X(primitive_desc_query_md)                                                                     \
    X(primitive_create)                                                                            \
    X(primitive_execute)                                                                           \
    X(primitive_destroy)                                                                           \
    X(set_primitive_cache_capacity)                                                                \
    X(reorder_primitive_desc_create)                                                               \
    X(concat_primitive_desc_create)                                                                \
    X(sum_primitive_desc_create)                                                                   \
    X(binary_primitive_desc_create)                                                                \
    X(convolution_forward_primitive_desc_create)                                                   \
    X(deconvolution_forward_primitive_desc_create)                                                 \
    X(pooling_forward_primitive_desc_create)                                                       \
    X(eltwise_forward_primitive_desc_create)                                                       \
    X(softmax_forward_primitive_desc_create)                                                       \
    X(lrn_forward_primitive_desc_create)                                                           \
    X(shuffle_forward_primitive_desc_create)                                                       \
    X(batch_normalization_forward_primitive_desc_create)                                           \
    X(layer_normalization_forward_primitive_desc_create)                                           \
    X(matmul_primitive_desc_create)                                                                \
    X(inner_product_forward_primitive_desc_create)                                                 \
    X(resampling_forward_primitive_desc_create)                                                    \
    X(reduction_primitive_desc_create)                                                             \
    X(convolution_backward_data_primitive_desc_create)                                             \
    X(convolution_backward_weights_primitive_desc_create)                                          \
    X(eltwise_backward_primitive_desc_create)                                                      \
    X(softmax_backward_primitive_desc_create)                                                      \
    X(layer_normalization_backward_primitive_desc_create)

/// Functions of one opened libdnnl, an engine on the CPU, and its OpenMP runtime.
class Library {
  public:
    /// Opens `path` once for the process; later calls return the same library.
    /// Throws LibraryError: not found, OpenMP missing, unsupported version, missing symbol.
    static Library &open(const std::string &path);

    /// Returns the library that `open` opened. Throws LibraryError before that.
    static Library &get();

    static bool is_open();

#define TIGHTSHIP_DECLARE(name) decltype(&dnnl_##name) name = nullptr;
    TIGHTSHIP_ONEDNN_FUNCTIONS(TIGHTSHIP_DECLARE)
#undef TIGHTSHIP_DECLARE

    dnnl_engine_t engine = nullptr;
    std::string path;       ///< file that the functions come from
    std::string version_id; ///< "3.2.0"
    std::string openmp;     ///< owner of its threads: "tightship", or a file ("libgomp.so.1")

    /// Sets the threads of the next primitives that the calling thread makes or runs.
    void set_threads(int count) const { omp_set_num_threads_(count); }
    int threads() const { return omp_get_max_threads_(); }
    /// Sets whether each thread of the caller's next regions must be a thread of the system.
    void meet(bool wanted) const {
        if (meet_ != nullptr)
            meet_(wanted ? 1 : 0);
    }

    /// Returns whether a call succeeded. Throws OutOfMemory naming `what` if memory ran out.
    static bool served(dnnl_status_t status, const char *what);
    /// Throws OutOfMemory naming `what` unless memory suffices for any object of the library, which
    /// checks few of its own allocations: if one fails, it writes to address 0.
    static void require_room(const char *what);
    /// Throws Error naming `what` if a call failed, or OutOfMemory as `served` does.
    static void check(dnnl_status_t status, const char *what);

  private:
    explicit Library(const std::string &path);
    void check_version();
    void find_openmp();
    template <class Function> Function resolve(const char *name) const;

    void *handle_ = nullptr;
    void (*omp_set_num_threads_)(int) = nullptr;
    int (*omp_get_max_threads_)() = nullptr;
    void (*meet_)(int) = nullptr; ///< null if they always are
};

/// Sets the thread count for a scope, then restores the caller's.
class ThreadScope {
  public:
    explicit ThreadScope(int count) : before_(Library::get().threads()) {
        if (count != before_)
            Library::get().set_threads(count);
    }
    ~ThreadScope() { Library::get().set_threads(before_); }
    ThreadScope(const ThreadScope &) = delete;
    ThreadScope &operator=(const ThreadScope &) = delete;

  private:
    int before_;
};

} // namespace tightship::onednn

#endif
